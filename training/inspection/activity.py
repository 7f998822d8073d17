"""When users act, by hour, weekday and month, and whether what they choose depends on it."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int64
from numpy.typing import NDArray
from scipy import sparse

from model.clock import MICROSECONDS_PER_DAY
from model.time_zone import find_offsets
from training.data.dataset import Dataset
from training.inspection.overlap import compute_collisions, compute_overlap

HOURS = tuple(str(hour) for hour in range(24))
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

_MICROSECONDS_PER_HOUR = MICROSECONDS_PER_DAY // 24
_MOST_DAYS = 100_000
_LEAST_GAIN = 1e-4
_ADDED_EVENTS = (10.0, 100.0, 1_000.0, 10_000.0, 100_000.0)


@dataclass(frozen=True)
class Activity:
    """How the users' activity is spread over one cycle of the calendar.

    Attributes:
        cycle: "hour", "weekday" or "month".
        labels: the name of each part of the cycle.
        visits: per part, how many hours (for "hour") or days (otherwise) of a user have an event.
        expected: per part, the share of the visits if users came evenly over the span.
        distance: the total variation between the shares of the visits and the expected ones:
            0 if even, near 1 if all visits fall into a small part. None if it cannot be measured.
        noise: the distance that chance alone would cause with as many visits.
        overlap: how alike the items of two parts are (Morisita, 1 if alike); None for months, which
            drift would confound, and if there are not enough events.
        gain: how well the part predicts what is chosen: the mean rise of the logarithm of an item's
            predicted share, for the later half of the events, where the shares in the part are
            counted in the earlier half, too, beside those of all parts. None as for `overlap`.
        gain_error: its standard error over users; None likewise.
        note: why the distance is None; empty otherwise.
    """

    cycle: str
    labels: tuple[str, ...]
    visits: tuple[int, ...]
    expected: tuple[float, ...]
    distance: float | None
    noise: float | None
    overlap: float | None
    gain: float | None
    gain_error: float | None
    note: str

    @property
    def is_uneven(self) -> bool:
        """Whether activity differs over the cycle, clearly beyond chance."""
        return self.distance is not None and self.distance > 0.02 + 2 * (self.noise or 0)

    @property
    def decides_items(self) -> bool:
        """Whether later choices depend on the part, clearly beyond chance."""
        return self.gain is not None and self.gain > max(3 * (self.gain_error or 0), _LEAST_GAIN)


def measure_activity(
    dataset: Dataset, *, has_hours: bool, time_zone: str = "UTC"
) -> tuple[Activity, ...]:
    """Measure the activity by hour, weekday and month of a time zone.

    Args:
        has_hours: whether the timestamps are finer than days.
    """
    times = find_offsets(time_zone).to_local(dataset.times)
    days = times // MICROSECONDS_PER_DAY
    hours = times // _MICROSECONDS_PER_HOUR
    span = (int(dataset.times.max()) - int(dataset.times.min())) / MICROSECONDS_PER_DAY
    # Beyond some centuries, the weekdays and months of the span are even.
    calendar = np.arange(days.min(), min(days.max() + 1, days.min() + _MOST_DAYS))
    return (
        _measure(
            dataset,
            "hour",
            HOURS,
            hours % 24,
            instants=hours,
            expected=np.full(24, 1 / 24),
            note=_explain_short_span(span, 2)
            if has_hours
            else "timestamps are whole days, so there are no hours",
        ),
        _measure(
            dataset,
            "weekday",
            WEEKDAYS,
            _find_weekdays(days),
            instants=days,
            expected=_share(_find_weekdays(calendar), 7),
            note=_explain_short_span(span, 14),
        ),
        _measure(
            dataset,
            "month",
            MONTHS,
            _find_months(days),
            instants=days,
            expected=_share(_find_months(calendar), 12),
            note=_explain_short_span(span, 360),
        ),
    )


def _measure(
    dataset: Dataset,
    cycle: str,
    labels: tuple[str, ...],
    parts: Int64[np.ndarray, " events"],
    *,
    instants: Int64[np.ndarray, " events"],
    expected: Float[np.ndarray, " parts"],
    note: str,
) -> Activity:
    """Measure one cycle; `instants` numbers the hours or days that count as one visit."""
    # The events of a user are in order of time, so those of one visit are neighbours.
    begins = np.ones(len(dataset), dtype=np.bool_)
    begins[1:] = (np.diff(instants) != 0) | (np.diff(dataset.user_of) != 0)
    visits = np.bincount(parts[begins], minlength=len(labels))
    shares = visits / visits.sum()
    variance = expected * (1 - expected) / visits.sum()
    measured = not note
    has_items = measured and cycle != "month"
    gain, error = _measure_gain(dataset, parts, len(labels)) if has_items else (None, None)
    return Activity(
        cycle=cycle,
        labels=labels,
        visits=tuple(visits.tolist()),
        expected=tuple(expected.tolist()),
        distance=float(abs(shares - expected).sum() / 2) if measured else None,
        noise=float(np.sqrt(2 / np.pi * variance).sum() / 2) if measured else None,
        overlap=_measure_overlap(dataset, parts, len(labels)) if has_items else None,
        gain=gain,
        gain_error=error,
        note=note,
    )


def _measure_overlap(dataset: Dataset, parts: NDArray[np.int64], count: int) -> float | None:
    same_item, pairs = compute_collisions(
        parts, dataset.rows.astype(np.int64), dataset.user_of, count
    )
    return compute_overlap(same_item, pairs, ~np.eye(count, dtype=np.bool_))


def _measure_gain(
    dataset: Dataset, parts: Int64[np.ndarray, " events"], count: int
) -> tuple[float, float] | tuple[None, None]:
    """Measure how well the part of the cycle predicts the later half of the events.

    An item's share in a part is drawn to its share in all parts, as if so many more events of those
    had been counted; the number is the one with the largest gain.

    Returns:
        The gain and its standard error, with users as units; None without events to predict.
    """
    order = np.argsort(dataset.times, kind="stable")
    early, late = order[: len(order) // 2], order[len(order) // 2 :]
    size = len(dataset.catalog) + 1
    counts = np.bincount(dataset.rows[early], minlength=size).astype(np.float64)
    late = late[counts[dataset.rows[late]] > 0]  # New items have no share in any part.
    if not len(late):
        return None, None
    cells = sparse.csr_array(
        (np.ones(len(early)), (parts[early], dataset.rows[early])), shape=(count, size)
    )
    in_part = np.asarray(cells[parts[late], dataset.rows[late]]).ravel()
    of_part = np.bincount(parts[early], minlength=count)[parts[late]]
    shares = counts[dataset.rows[late]] / len(early)
    gains = (
        np.log((in_part + added * shares) / (of_part + added) / shares) for added in _ADDED_EVENTS
    )
    best = max(gains, key=lambda gain: float(gain.mean()))
    users = np.bincount(dataset.user_of[late], weights=best - best.mean())
    return float(best.mean()), float(np.sqrt((users**2).sum()) / len(best))


def _explain_short_span(span: float, needed: float) -> str:
    """Explain that a span of days is too short; empty if it is long enough."""
    if span >= needed:
        return ""
    return f"needs a span of {needed:g} days, but the events span {span:.1f}"


def _share(parts: NDArray[np.int64], count: int) -> NDArray[np.float64]:
    """Compute the share of each part."""
    return np.bincount(parts, minlength=count) / len(parts)


def _find_weekdays(days: NDArray[np.int64]) -> NDArray[np.int64]:
    """Find the weekday of days since 1970-01-01, a Thursday; Monday is 0."""
    return (days + 3) % 7


def _find_months(days: NDArray[np.int64]) -> NDArray[np.int64]:
    """Find the month of days since 1970-01-01; January is 0."""
    return days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64) % 12
