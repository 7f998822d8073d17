"""Which instants an event may have: one rule for requests, imports, training and inspection.

An event happens at most 300 seconds ahead of the clock, which allows for skew, and not before 1990:
an earlier one is a missing time (0 is 1970), or a number in another unit than seconds.

Training also leaves out *strays*, events far from all others, since the periods of a model and the
spans of its counts are chosen from the first instant to the last. One of them would stretch all.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from model.clock import MICROSECONDS_PER_DAY, MICROSECONDS_PER_SECOND

MAX_AHEAD_SECONDS = 300
"""How far ahead of the clock an event may be."""

EARLIEST_EVENT = 631_152_000_000_000
"""1990-01-01T00:00:00Z in epoch microseconds; no log of a shop's or a site's users is older."""

_MOST_OLD = 0.5
"""Share of the events above which those before 1990 are meant so."""

_MOST_AHEAD = 0.01
"""Share of the events above which those ahead of the clock are meant so."""

_FEWEST_EVENTS = 100
"""Events below which none is a stray."""

_STRAY_SHARE = 0.001
"""Share of the events at either end that does not count for the middle."""

_LEAST_DISTANCE = 30 * MICROSECONDS_PER_DAY
"""Microseconds from the middle within which no event is a stray."""


class TimeBounds(NamedTuple):
    """The earliest and the latest instant that events may have, epoch microseconds."""

    earliest: int
    latest: int

    @classmethod
    def at(cls, now: int) -> "TimeBounds":
        """Return the bounds as of an instant, epoch microseconds."""
        return cls(EARLIEST_EVENT, now + MAX_AHEAD_SECONDS * MICROSECONDS_PER_SECOND)

    def contain(self, instant: int) -> bool:
        """Return whether an event may have an instant, epoch microseconds."""
        return self.earliest <= instant <= self.latest


class TimeCheck(NamedTuple):
    """Per event, whether it is left out of training, and why.

    Attributes:
        is_old: before 1990.
        is_ahead: ahead of the clock.
        is_stray: within the bounds, but far from all others.
    """

    is_old: NDArray[np.bool_]
    is_ahead: NDArray[np.bool_]
    is_stray: NDArray[np.bool_]

    @property
    def is_plausible(self) -> NDArray[np.bool_]:
        """Whether each event is trained on."""
        return ~(self.is_old | self.is_ahead | self.is_stray)


def check_times(times: NDArray[np.int64], now: int) -> TimeCheck:
    """Check the times of events to train on.

    Times of which most are before 1990 count from another origin, and are meant so; where more than
    a hundredth is ahead, they are simulated, or this machine's clock is behind. An event is a stray
    if its distance from the middle of the events (all but the first and the last thousandth)
    exceeds that middle's length and 30 days.

    Args:
        times: epoch microseconds.
        now: epoch microseconds.
    """
    none = np.zeros(len(times), dtype=np.bool_)
    if not len(times):
        return TimeCheck(none, none, none)
    bounds = TimeBounds.at(now)
    is_old, is_ahead = times < bounds.earliest, times > bounds.latest
    if is_old.mean() > _MOST_OLD:
        is_old = none
    if is_ahead.sum() > max(_MOST_AHEAD * len(times), 1):
        is_ahead = none
    if (is_old | is_ahead).all():
        is_old = is_ahead = none
    is_within = ~(is_old | is_ahead)
    middle = _find_middle(times[is_within])
    distance = max(middle.latest - middle.earliest, _LEAST_DISTANCE)
    is_far = (times < middle.earliest - distance) | (times > middle.latest + distance)
    return TimeCheck(is_old, is_ahead, is_within & is_far)


def _find_middle(times: NDArray[np.int64]) -> TimeBounds:
    cut = max(int(len(times) * _STRAY_SHARE), 1) if len(times) >= _FEWEST_EVENTS else 0
    ordered = np.partition(times, (cut, len(times) - 1 - cut))
    return TimeBounds(int(ordered[cut]), int(ordered[len(times) - 1 - cut]))
