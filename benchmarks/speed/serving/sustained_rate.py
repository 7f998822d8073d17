"""The highest rate of requests that a service sustains, by trials of a few seconds."""

import math
import random
import statistics
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.speed.serving.generator import Outcome

P90_BOUND_MS = 7.0
_LEAST_SHARE = 0.99
_ATTEMPTS = 2
"""A rate fails if two trials in a row fail: other work on the machine fails one at times."""


@dataclass(frozen=True)
class OpenLoopTrial:
    """One open-loop trial.

    Attributes:
        offered: requests per second by their intended starts.
        achieved: responses with status 200 per second until the last one, less a median latency:
            an idle service also takes as long for the last one.
        late_p99_ms: how late the generator sent, also for lack of a free connection.
        generator_cores: processor time of the generator per second.
        service_ms: processor time of the service per request.
        other_cores: processor time of everything else on the machine per second.
    """

    offered: float
    achieved: float
    p50_ms: float
    p90_ms: float
    p99_ms: float
    failed: int
    late_p99_ms: float
    generator_cores: float
    service_ms: float
    other_cores: float

    @property
    def keeps_up(self) -> bool:
        """Whether the service answered at the offered rate, without a failure."""
        return not self.failed and self.achieved >= _LEAST_SHARE * self.offered

    @property
    def meets_bound(self) -> bool:
        """Whether the service also answered in time."""
        return self.keeps_up and self.p90_ms < P90_BOUND_MS


def draw_starts(rate: float, seconds: float, arrivals: str, seed: int) -> list[float]:
    """Draw intended starts: a Poisson process given its count, or at a constant rate."""
    count = max(round(rate * seconds), 1)
    if arrivals == "constant":
        return [number / rate for number in range(count)]
    rng = random.Random(seed)
    return sorted(rng.uniform(0, seconds) for _ in range(count))


def summarize(
    outcome: Outcome, seconds: float, *, service_seconds: float, other_seconds: float
) -> OpenLoopTrial:
    """Summarize an open-loop trial.

    Args:
        outcome: of the load.
        seconds: its intended duration.
        service_seconds: processor time of the service.
        other_seconds: processor time of everything else.
    """
    count = len(outcome.starts)
    latencies = [each for each in outcome.latencies if each is not None]
    typical = statistics.median(latencies) if latencies else 0.0
    wall = max(seconds, outcome.ended - typical)
    lateness = [sent - start for sent, start in zip(outcome.sent, outcome.starts, strict=True)]
    return OpenLoopTrial(
        offered=round(count / seconds, 1),
        achieved=round(outcome.statuses[200] / wall, 1),
        p50_ms=compute_quantile_ms(latencies, 0.5),
        p90_ms=compute_quantile_ms(latencies, 0.9),
        p99_ms=compute_quantile_ms(latencies, 0.99),
        failed=outcome.failed,
        late_p99_ms=compute_quantile_ms(lateness, 0.99),
        generator_cores=round(outcome.processor_seconds / wall, 3),
        service_ms=round(1e3 * service_seconds / count, 3),
        other_cores=round(max(other_seconds / wall, 0.0), 2),
    )


def compute_quantile_ms(seconds: list[float], share: float) -> float:
    """Compute a quantile in milliseconds; NaN of nothing."""
    if not seconds:
        return math.nan
    ordered = sorted(seconds)
    return round(1e3 * ordered[min(int(share * len(ordered)), len(ordered) - 1)], 2)


def compute_median_ms(seconds: list[float]) -> float:
    """Compute a median in milliseconds."""
    return round(1e3 * statistics.median(seconds), 3)


def find_highest_rate(
    run: Callable[[float], OpenLoopTrial],
    accepts: Callable[[OpenLoopTrial], bool],
    *,
    start: float,
    least: float,
    precision: float = 1.05,
) -> OpenLoopTrial | None:
    """Find the trial of the highest accepted rate, by doubling and then bisecting.

    Args:
        run: runs a trial at a rate.
        accepts: whether a trial is good enough.
        start: the first rate.
        least: the rate below which none is tried.
        precision: the ratio of the lowest refused to the highest accepted rate at which to stop.
    """
    rate, best, refused = start, None, math.inf
    accepted = 0.0
    while not accepted or refused / accepted > precision:
        trial = next((each for _ in range(_ATTEMPTS) if accepts(each := run(rate))), None)
        if trial is None:
            refused = rate
        else:
            accepted, best = rate, trial
        if not accepted:
            rate = refused / 2
            if rate < least:
                return None
        else:
            rate = 2 * accepted if refused == math.inf else math.sqrt(accepted * refused)
    return best
