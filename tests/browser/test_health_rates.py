"""The arithmetic of the Operations page, run in the browser: exact numbers, worked out by hand."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser

from tests.browser.dashboard import Dashboard, watched_dashboard
from tests.processes import ROOT

INFINITY = "+Inf"
ORIGIN = "2026-01-01T00:00:00Z"


@pytest.fixture(scope="module")
def service_page(browser: Browser, service: str) -> Iterator[Dashboard]:
    """A page of the service without scripts, which can import the dashboard's modules."""
    with watched_dashboard(browser, service) as dashboard:
        # The image has no icon, so the browser requests one that does not exist.
        dashboard.expected_complaint = "404"
        dashboard.page.goto(f"{service}/dashboard/shell/icon.svg")
        yield dashboard


def quantile(dashboard: Dashboard, level: float, buckets: list[tuple[float | str, float]]) -> Any:
    return dashboard.page.evaluate(
        """async ([level, buckets]) => {
            const { histogramQuantile } = await import("/dashboard/health/metrics.js");
            const read = ([bound, count]) => [bound === "+Inf" ? Infinity : bound, count];
            return histogramQuantile(level, buckets.map(read));
        }""",
        [level, buckets],
    )


def test_a_quantile_is_interpolated_within_its_bucket(service_page: Dashboard) -> None:
    buckets: list[tuple[float | str, float]] = [(0.1, 10), (0.2, 30), (0.5, 40), (INFINITY, 40)]
    at = {
        level: quantile(service_page, level, buckets) for level in (0.125, 0.25, 0.5, 0.75, 0.875)
    }
    expected = {0.125: 0.05, 0.25: 0.1, 0.5: 0.15, 0.75: 0.2, 0.875: 0.35}
    assert at == pytest.approx(expected)


def test_a_quantile_ignores_the_order_of_buckets(service_page: Dashboard) -> None:
    assert quantile(service_page, 0.5, [(INFINITY, 4), (2.0, 4), (1.0, 2)]) == 1.0


def test_values_beyond_the_last_bound_count_as_the_bound(service_page: Dashboard) -> None:
    assert quantile(service_page, 0.99, [(1.0, 10), (5.0, 90), (INFINITY, 100)]) == 5.0


def test_a_first_bucket_that_ends_at_zero_is_zero(service_page: Dashboard) -> None:
    assert quantile(service_page, 0.5, [(0.0, 8), (1.0, 10), (INFINITY, 10)]) == 0.0


@pytest.mark.parametrize(
    "buckets", [[], [(1.0, 0), (INFINITY, 0)], [(INFINITY, 3)], [(1.0, 2), (2.0, 3)]]
)
def test_no_observations_or_bounds_give_no_quantile(
    service_page: Dashboard, buckets: list[tuple[float | str, float]]
) -> None:
    assert quantile(service_page, 0.5, buckets) is None


def response(instance: str, at: int, count: float, *, started: int = -100_000) -> dict[str, Any]:
    """A process's response, received at a second since the origin."""
    return {
        "instance": instance,
        "started": started,
        "at": at,
        "metrics": [
            {
                "name": "calls_total",
                "kind": "counter",
                "samples": [
                    {"name": "calls_total", "labels": {"route": "/a"}, "value": count},
                    {"name": "calls_total", "labels": {"route": "/b"}, "value": 0},
                ],
            }
        ],
    }


def rates(dashboard: Dashboard, responses: list[dict[str, Any]], *, now: int) -> dict[str, Any]:
    """Rates over the last sixty seconds."""
    computed: dict[str, Any] = dashboard.page.evaluate(
        """async ([responses, now, origin]) => {
            const { computeRates, toSnapshot } = await import("/dashboard/health/metrics.js");
            const instant = (second) => new Date(Date.parse(origin) + second * 1000).toISOString();
            const snapshots = responses.map(({ instance, started, at, metrics }) => toSnapshot(
                { instance, started_at: instant(started), at: instant(at), metrics }, at * 1000));
            const rates = computeRates(snapshots, { now: now * 1000, window: 60000 });
            return {
                rate: rates.sum("calls_total", ({ route }) => route === "/a"),
                shares: rates.share("calls_total", ({ route }) => route === "/a"),
                seconds: rates.seconds,
                processes: rates.processes,
                isSinceStart: rates.isSinceStart,
            };
        }""",
        [responses, now, ORIGIN],
    )
    return computed


def test_a_rate_is_the_increase_over_the_time_between(service_page: Dashboard) -> None:
    computed = rates(service_page, [response("a", 0, 100), response("a", 5, 120)], now=5)
    assert computed == {
        "rate": 4,
        "shares": 1,
        "seconds": 5,
        "processes": 1,
        "isSinceStart": False,
    }


def test_a_rate_covers_only_the_last_minute(service_page: Dashboard) -> None:
    responses = [response("a", 0, 0), response("a", 50, 5_000), response("a", 100, 5_100)]
    assert rates(service_page, responses, now=100)["rate"] == 2


def test_after_a_pause_the_rate_covers_the_pause(service_page: Dashboard) -> None:
    computed = rates(service_page, [response("a", 0, 0), response("a", 500, 1_000)], now=500)
    assert (computed["rate"], computed["seconds"]) == (2, 500)


def test_rates_of_several_processes_are_summed(service_page: Dashboard) -> None:
    responses = [
        response("a", 0, 1_000),
        response("b", 5, 7),
        response("b", 10, 17),
        response("a", 20, 1_060),
    ]
    computed = rates(service_page, responses, now=20)
    assert (computed["rate"], computed["processes"]) == (2 + 3, 2)


def test_a_process_with_one_response_has_no_rate(service_page: Dashboard) -> None:
    responses = [response("a", 0, 0), response("a", 10, 30), response("b", 10, 900_000)]
    computed = rates(service_page, responses, now=10)
    assert (computed["rate"], computed["processes"]) == (3, 1)


def test_a_process_that_just_started_counted_from_zero(service_page: Dashboard) -> None:
    responses = [response("a", 0, 0), response("a", 10, 30), response("b", 10, 40, started=2)]
    assert rates(service_page, responses, now=10)["rate"] == 3 + 5


def test_a_process_that_stopped_responding_is_left_out(service_page: Dashboard) -> None:
    responses = [
        response("b", 0, 0),
        response("b", 1, 10),
        response("a", 70, 0),
        response("a", 80, 30),
    ]
    computed = rates(service_page, responses, now=80)
    assert (computed["rate"], computed["processes"]) == (3, 1)


def test_a_counter_that_decreases_was_reset(service_page: Dashboard) -> None:
    assert rates(service_page, [response("a", 0, 500), response("a", 5, 20)], now=5)["rate"] == 4


def test_the_first_response_gives_rates_since_the_start(service_page: Dashboard) -> None:
    computed = rates(service_page, [response("a", 0, 300_000)], now=0)
    assert computed["isSinceStart"]
    assert (computed["rate"], computed["seconds"]) == (3, 100_000)


def test_limits_are_those_of_the_alerts(service_page: Dashboard) -> None:
    limits = service_page.page.evaluate(
        'async () => JSON.stringify((await import("/dashboard/health/panels.js")).LIMITS)'
    )
    alerts = (ROOT / "docker" / "prometheus" / "alerts.yml").read_text()
    for limit in json.loads(limits).values():
        (rule,) = re.findall(rf"alert: {limit['alert']}\n(.+?)labels:", alerts, re.DOTALL)
        # Infinity is null in JSON: the page has no data of yesterday.
        stated = limit["watch"] if limit["bad"] is None else limit["bad"]
        assert re.search(r" > ([\d.]+)\n(?!.* > )", rule, re.DOTALL)[1] == f"{stated:g}", rule  # type: ignore[index]


@pytest.mark.parametrize(
    ("value", "status"),
    [(None, None), (0.0, "ok"), (0.005, "ok"), (0.006, "watch"), (0.02, "bad")],
)
def test_a_status_follows_from_the_limit(
    service_page: Dashboard, value: float | None, status: str | None
) -> None:
    computed = service_page.page.evaluate(
        """async (value) => {
            const { computeStatus, LIMITS } = await import("/dashboard/health/panels.js");
            return computeStatus(value, LIMITS.failed);
        }""",
        value,
    )
    assert computed == status
