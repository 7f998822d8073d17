"""How the choices of all users change over time: overlap of periods, and recent popularity."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from model.clock import MICROSECONDS_PER_DAY
from training.data.dataset import Dataset
from training.inspection.overlap import compute_collisions, compute_overlap

Unit = Literal["month", "week", "day"]

_MOST_PERIODS = 120
_MOST_LAG = 24
_LEAST_PERIOD = 0.25
"""Periods with fewer events, as a share of the median of all periods, are left out."""
_CUTS = 60
_EVENTS_PER_CUT = 100
_WINDOWS = (7, 28)


@dataclass(frozen=True)
class Drift:
    """How alike the choices in periods of the calendar are, by the time between them.

    Attributes:
        unit: the period.
        periods: the number of periods that are compared.
        overlaps: `overlaps[lag - 1]` is the Morisita overlap of periods that are `lag` apart, 1 if
            items are chosen alike; None if there are not enough events.
    """

    unit: Unit
    periods: int
    overlaps: tuple[float | None, ...]

    @property
    def change(self) -> float:
        """One minus the overlap of a period with the one before: 0 without drift."""
        return max(0.0, 1 - (self.overlaps[0] if self.overlaps[0] is not None else 1.0))


@dataclass(frozen=True)
class RecentPopularity:
    """How well the popularity of the last days predicts, compared with that of all time.

    Attributes:
        days: length of the window, in days.
        hit_rate: share of the sampled events whose item was among the ten most popular.
        gain: geometric mean of the factor by which the window raises the predicted share of the
            item that was chosen; above 1 if recent popularity predicts better.
    """

    days: int
    hit_rate: float
    gain: float


@dataclass(frozen=True)
class PopularityComparison:
    """Predictions of a sample of events by the popularity before them.

    Attributes:
        events: size of the sample.
        hit_rate: share of the sample whose item was among the ten most popular of all time.
        recent: the same for windows of the last days; empty if the span is too short.
    """

    events: int
    hit_rate: float
    recent: tuple[RecentPopularity, ...]


def measure_drift(dataset: Dataset) -> Drift | None:
    """Measure the overlap of periods: months, or weeks or days if the span is short.

    The latest 120 periods are compared, without those that have few events, such as the parts of
    periods at either end of the span.

    Returns:
        The drift, or None with fewer than two periods.
    """
    days = dataset.times // MICROSECONDS_PER_DAY
    span = int(days.max() - days.min())
    unit: Unit = "month" if span >= 120 else "week" if span >= 28 else "day"
    numbers = count_periods(dataset.times, unit)
    periods, events = np.unique(numbers, return_counts=True)
    periods = periods[events >= _LEAST_PERIOD * np.median(events)][-_MOST_PERIODS:]
    if len(periods) < 2:
        return None
    is_compared = np.isin(numbers, periods)
    same_item, pairs = compute_collisions(
        np.searchsorted(periods, numbers[is_compared]),
        dataset.rows[is_compared].astype(np.int64),
        dataset.user_of[is_compared],
        len(periods),
    )
    lags = periods[None, :] - periods[:, None]
    most = min(_MOST_LAG, int(lags.max()))
    return Drift(
        unit=unit,
        periods=len(periods),
        overlaps=tuple(
            compute_overlap(same_item, pairs, lags == lag) for lag in range(1, most + 1)
        ),
    )


def count_periods(times: NDArray[np.int64], unit: Unit) -> NDArray[np.int64]:
    """Count months, weeks (from Monday) or days from 1970 to each instant, epoch microseconds."""
    days = times // MICROSECONDS_PER_DAY
    if unit == "day":
        return days
    if unit == "week":
        return (days + 3) // 7
    return days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)


def compare_popularity(dataset: Dataset) -> PopularityComparison | None:
    """Predict a sample of events by the popularity of the last days, and by that of all time.

    The sample is drawn from the events within a day after each of 60 instants in the last 70 % of
    the events. The share of an item in a window is blended with that in the next longer one by the
    number of different items in it (Witten and Bell 1991), as in the wide part of a recommender.

    Returns:
        The comparison, or None with fewer than 100 events.
    """
    if len(dataset) < 100:
        return None
    order = np.argsort(dataset.times, kind="stable")
    times, rows = dataset.times[order], dataset.rows[order].astype(np.int64) - 1
    items = int(rows.max()) + 1
    span = (int(times[-1]) - int(times[0])) / MICROSECONDS_PER_DAY
    windows = tuple(days for days in _WINDOWS if 2 * days <= span)
    rng = np.random.default_rng(0)
    hits: list[NDArray[np.bool_]] = []
    logs: list[NDArray[np.float64]] = []
    for cut in np.unique(np.linspace(0.3 * len(times), len(times) - 1, _CUTS).astype(np.int64)):
        # Events at the instant of the cut itself are neither counted nor predicted.
        before = int(np.searchsorted(times, times[cut], side="left"))
        begin = int(np.searchsorted(times, times[cut], side="right"))
        end = int(np.searchsorted(times, times[cut] + MICROSECONDS_PER_DAY, side="right"))
        if before == 0 or begin == end:
            continue
        chosen = rng.choice(
            np.arange(begin, end), size=min(_EVENTS_PER_CUT, end - begin), replace=False
        )
        share = np.full(items, 1 / items)
        # All time first: each window is blended with the next longer one.
        for days in (None, *reversed(windows)):
            since = times[cut] - days * MICROSECONDS_PER_DAY if days is not None else times[0]
            first = int(np.searchsorted(times, since, side="left"))
            counts = np.bincount(rows[first:before], minlength=items)
            share = _blend(counts, share)
            hits.append(_is_among_ten(counts, rows[chosen]))
            logs.append(np.log(share[rows[chosen]]))
    kinds = 1 + len(windows)
    if not hits:
        return None
    hit_rates = [float(np.concatenate(hits[kind::kinds]).mean()) for kind in range(kinds)]
    means = [float(np.concatenate(logs[kind::kinds]).mean()) for kind in range(kinds)]
    return PopularityComparison(
        events=sum(len(part) for part in hits[::kinds]),
        hit_rate=hit_rates[0],
        recent=tuple(
            RecentPopularity(
                days=days,
                hit_rate=hit_rates[kind],
                gain=float(np.exp(means[kind] - means[0])),
            )
            for kind, days in sorted(enumerate(reversed(windows), start=1), key=lambda it: it[1])
        ),
    )


def _blend(counts: NDArray[np.int64], longer: NDArray[np.float64]) -> NDArray[np.float64]:
    """Blend the shares of counts with those of a longer window, after Witten and Bell."""
    different = np.count_nonzero(counts)
    total = counts.sum()
    return longer if total == 0 else (counts + different * longer) / (total + different)


def _is_among_ten(counts: NDArray[np.int64], targets: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return whether each target is one of the ten items with most events, if it has any."""
    best = np.argsort(-counts, kind="stable")[:10]
    return np.isin(targets, best) & (counts[targets] > 0)
