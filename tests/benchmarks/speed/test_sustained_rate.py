import dataclasses

import pytest

from benchmarks.speed.serving.generator import Outcome
from benchmarks.speed.serving.sustained_rate import (
    OpenLoopTrial,
    draw_starts,
    find_highest_rate,
    summarize,
)

TRIAL = OpenLoopTrial(100, 100, 1.0, 2.0, 3.0, 0, 0.1, 0.1, 1.0, 0.0)


@pytest.mark.parametrize("start", [10.0, 130.0, 500.0])
def test_the_search_finds_the_capacity_to_a_twentieth(start: float) -> None:
    def run(rate: float) -> OpenLoopTrial:
        return dataclasses.replace(TRIAL, offered=rate, achieved=min(rate, 137))

    best = find_highest_rate(run, lambda trial: trial.keeps_up, start=start, least=5)
    assert best is not None
    assert 137 / 1.05 <= best.offered <= 137 / 0.99


def test_the_search_ends_where_no_rate_is_sustained() -> None:
    rates: list[float] = []

    def run(rate: float) -> OpenLoopTrial:
        rates.append(rate)
        return dataclasses.replace(TRIAL, failed=1)

    assert find_highest_rate(run, lambda trial: trial.keeps_up, start=80, least=20) is None
    assert min(rates) == 20


def test_a_rate_that_fails_once_is_tried_again() -> None:
    failures = iter([True, False])

    def run(rate: float) -> OpenLoopTrial:
        is_failure = rate > 150 or (rate == 100 and next(failures, False))
        return dataclasses.replace(TRIAL, offered=rate, achieved=rate, failed=int(is_failure))

    best = find_highest_rate(run, lambda trial: trial.keeps_up, start=100, least=5)
    assert best is not None
    assert best.offered > 100


@pytest.mark.parametrize(
    ("trial", "keeps_up", "meets_bound"),
    [
        (TRIAL, True, True),
        (dataclasses.replace(TRIAL, p90_ms=7.0), True, False),
        (dataclasses.replace(TRIAL, achieved=98.9), False, False),
        (dataclasses.replace(TRIAL, failed=1), False, False),
    ],
)
def test_a_trial_is_judged_by_rate_failures_and_p90(
    trial: OpenLoopTrial, keeps_up: bool, meets_bound: bool
) -> None:
    assert (trial.keeps_up, trial.meets_bound) == (keeps_up, meets_bound)


@pytest.mark.parametrize("arrivals", ["poisson", "constant"])
def test_the_offered_rate_is_that_of_the_starts(arrivals: str) -> None:
    starts = draw_starts(50, 4, arrivals, seed=1)
    assert len(starts) == 200
    assert starts == sorted(starts) == draw_starts(50, 4, arrivals, seed=1)
    assert 0 <= starts[0] < starts[-1] < 4


def outcome_of(*, starts: list[float], latencies: list[float | None]) -> Outcome:
    outcome = Outcome(began=0.0, starts=starts, sent=starts, latencies=latencies)
    ends = [start + each for start, each in zip(starts, latencies, strict=True) if each is not None]
    outcome.statuses[200], outcome.ended = len(ends), max(ends)
    return outcome


def test_a_late_last_response_lowers_the_achieved_rate() -> None:
    outcome = outcome_of(starts=[0.0, 0.5, 1.0], latencies=[0.1, 0.1, 3.1])
    trial = summarize(outcome, 1.5, service_seconds=0.3, other_seconds=0.4)
    assert (trial.offered, trial.achieved) == (2.0, 0.8)
    assert (trial.p50_ms, trial.p99_ms) == (100.0, 3100.0)
    assert (trial.service_ms, trial.other_cores) == (100.0, 0.1)


def test_a_typical_last_response_does_not() -> None:
    outcome = outcome_of(starts=[0.0, 0.5, 1.0], latencies=[0.8, 0.8, 0.8])
    trial = summarize(outcome, 1.0, service_seconds=0.0, other_seconds=0.0)
    assert trial.achieved == trial.offered


def test_a_request_without_a_response_has_failed() -> None:
    outcome = outcome_of(starts=[0.0, 0.5], latencies=[0.1, None])
    trial = summarize(outcome, 1.0, service_seconds=0.0, other_seconds=0.0)
    assert (trial.failed, trial.keeps_up) == (1, False)
