"""The arithmetic of the health view, in the browser that does it: exact numbers, worked by hand."""

import json
import re
from typing import Any

import pytest

from tests.browser.dashboard import Dashboard
from tests.processes import ROOT

ENDLESS = "+Inf"
STARTED = "2026-01-01T00:00:00Z"


@pytest.fixture
def service_page(dashboard: Dashboard) -> Dashboard:
    """A page of the service that does nothing by itself, but may import its modules."""
    # A picture names no icon, so the browser looks for one where there is none.
    dashboard.expected_complaint = "404"
    dashboard.page.goto(f"{dashboard.service}/dashboard/shell/icon.svg")
    return dashboard


def quantile(dashboard: Dashboard, place: float, buckets: list[tuple[float | str, float]]) -> Any:
    return dashboard.page.evaluate(
        """async ([place, buckets]) => {
            const { histogramQuantile } = await import("/dashboard/health/rates.js");
            const read = ([bound, count]) => [bound === "+Inf" ? Infinity : bound, count];
            return histogramQuantile(place, buckets.map(read));
        }""",
        [place, buckets],
    )


def test_a_quantile_lies_within_its_bucket_as_far_as_its_rank_does(
    service_page: Dashboard,
) -> None:
    buckets: list[tuple[float | str, float]] = [(0.1, 10), (0.2, 30), (0.5, 40), (ENDLESS, 40)]
    at = {
        place: quantile(service_page, place, buckets) for place in (0.125, 0.25, 0.5, 0.75, 0.875)
    }
    expected = {0.125: 0.05, 0.25: 0.1, 0.5: 0.15, 0.75: 0.2, 0.875: 0.35}
    assert at == pytest.approx(expected)


def test_a_quantile_does_not_depend_on_the_order_of_buckets(service_page: Dashboard) -> None:
    assert quantile(service_page, 0.5, [(ENDLESS, 4), (2.0, 4), (1.0, 2)]) == 1.0


def test_what_lies_beyond_the_last_bound_is_taken_to_lie_on_it(service_page: Dashboard) -> None:
    assert quantile(service_page, 0.99, [(1.0, 10), (5.0, 90), (ENDLESS, 100)]) == 5.0


def test_a_first_bucket_that_ends_at_zero_is_zero(service_page: Dashboard) -> None:
    assert quantile(service_page, 0.5, [(0.0, 8), (1.0, 10), (ENDLESS, 10)]) == 0.0


@pytest.mark.parametrize(
    "buckets", [[], [(1.0, 0), (ENDLESS, 0)], [(ENDLESS, 3)], [(1.0, 2), (2.0, 3)]]
)
def test_without_observations_or_bounds_there_is_no_quantile(
    service_page: Dashboard, buckets: list[tuple[float | str, float]]
) -> None:
    assert quantile(service_page, 0.5, buckets) is None


def heard(instance: str, at: int, counted: float, *, started: int = -100_000) -> dict[str, Any]:
    """What a process answered at a second since some instant, and when it was heard."""
    return {
        "instance": instance,
        "started": started,
        "at": at,
        "metrics": [
            {
                "name": "asked_total",
                "kind": "counter",
                "samples": [
                    {"name": "asked_total", "labels": {"route": "/a"}, "value": counted},
                    {"name": "asked_total", "labels": {"route": "/b"}, "value": 0},
                ],
            }
        ],
    }


def rates(dashboard: Dashboard, answers: list[dict[str, Any]], *, now: int) -> dict[str, Any]:
    """Rates over the last sixty seconds."""
    told: dict[str, Any] = dashboard.page.evaluate(
        """async ([answers, now, origin]) => {
            const { ratesOf, snapshotOf } = await import("/dashboard/health/rates.js");
            const instant = (second) => new Date(Date.parse(origin) + second * 1000).toISOString();
            const snapshots = answers.map(({ instance, started, at, metrics }) => snapshotOf(
                { instance, started_at: instant(started), at: instant(at), metrics }, at * 1000));
            const rates = ratesOf(snapshots, { now: now * 1000, window: 60000 });
            return {
                rate: rates.sum("asked_total", ({ route }) => route === "/a"),
                shares: rates.share("asked_total", ({ route }) => route === "/a"),
                seconds: rates.seconds,
                processes: rates.processes,
                isSinceStart: rates.isSinceStart,
            };
        }""",
        [answers, now, STARTED],
    )
    return told


def test_a_rate_is_what_was_added_over_the_time_between(service_page: Dashboard) -> None:
    told = rates(service_page, [heard("a", 0, 100), heard("a", 5, 120)], now=5)
    assert told == {
        "rate": 4,
        "shares": 1,
        "seconds": 5,
        "processes": 1,
        "isSinceStart": False,
    }


def test_a_rate_is_of_the_last_minute_alone(service_page: Dashboard) -> None:
    answers = [heard("a", 0, 0), heard("a", 50, 5_000), heard("a", 100, 5_100)]
    assert rates(service_page, answers, now=100)["rate"] == 2


def test_after_a_pause_the_rate_is_of_all_of_it(service_page: Dashboard) -> None:
    told = rates(service_page, [heard("a", 0, 0), heard("a", 500, 1_000)], now=500)
    assert (told["rate"], told["seconds"]) == (2, 500)


def test_processes_behind_a_proxy_add_up_whoever_answers_next(service_page: Dashboard) -> None:
    answers = [heard("a", 0, 1_000), heard("b", 5, 7), heard("b", 10, 17), heard("a", 20, 1_060)]
    told = rates(service_page, answers, now=20)
    assert (told["rate"], told["processes"]) == (2 + 3, 2)


def test_a_process_heard_of_once_says_nothing_of_the_last_minute(
    service_page: Dashboard,
) -> None:
    answers = [heard("a", 0, 0), heard("a", 10, 30), heard("b", 10, 900_000)]
    told = rates(service_page, answers, now=10)
    assert (told["rate"], told["processes"]) == (3, 1)


def test_a_process_that_just_started_has_counted_from_zero(service_page: Dashboard) -> None:
    answers = [heard("a", 0, 0), heard("a", 10, 30), heard("b", 10, 40, started=2)]
    assert rates(service_page, answers, now=10)["rate"] == 3 + 5


def test_a_process_that_fell_silent_is_left_out(service_page: Dashboard) -> None:
    answers = [heard("b", 0, 0), heard("b", 1, 10), heard("a", 70, 0), heard("a", 80, 30)]
    told = rates(service_page, answers, now=80)
    assert (told["rate"], told["processes"]) == (3, 1)


def test_a_counter_that_falls_began_again(service_page: Dashboard) -> None:
    assert rates(service_page, [heard("a", 0, 500), heard("a", 5, 20)], now=5)["rate"] == 4


def test_the_first_answer_tells_of_all_since_the_start(service_page: Dashboard) -> None:
    told = rates(service_page, [heard("a", 0, 300_000)], now=0)
    assert told["isSinceStart"]
    assert (told["rate"], told["seconds"]) == (3, 100_000)


def test_limits_are_those_of_the_alerts(service_page: Dashboard) -> None:
    limits = service_page.page.evaluate(
        'async () => JSON.stringify((await import("/dashboard/health/limits.js")).LIMITS)'
    )
    alerts = (ROOT / "docker" / "prometheus" / "alerts.yml").read_text()
    for limit in json.loads(limits).values():
        (rule,) = re.findall(rf"alert: {limit['alert']}\n(.+?)labels:", alerts, re.DOTALL)
        # Infinity is null in JSON: a page cannot know yesterday's share.
        stated = limit["watch"] if limit["bad"] is None else limit["bad"]
        assert re.search(r" > ([\d.]+)\n(?!.* > )", rule, re.DOTALL)[1] == f"{stated:g}", rule  # type: ignore[index]


@pytest.mark.parametrize(
    ("value", "judgement"),
    [(None, None), (0.0, "ok"), (0.005, "ok"), (0.006, "watch"), (0.02, "bad")],
)
def test_a_figure_is_judged_by_its_limit(
    service_page: Dashboard, value: float | None, judgement: str | None
) -> None:
    judged = service_page.page.evaluate(
        """async (value) => {
            const { judge, LIMITS } = await import("/dashboard/health/limits.js");
            return judge(value, LIMITS.failed);
        }""",
        value,
    )
    assert judged == judgement
