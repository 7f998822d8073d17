"""Which instants an event may have: one rule for requests, imports, training and inspection.

An event happens at most 300 seconds ahead of the clock, which allows for skew, and not before 1990:
an earlier one is a missing time (0 is 1970), or a number in another unit than seconds.

Training also leaves out *strays*, events far from all others, since the periods of a model and the
spans of its counts are chosen from the first instant to the last. One of them would stretch all.
One rule finds them: a *long gap* is longer than a year and than the span of the middle nine tenths
of the events, and what lies beyond it is left out if it is fewer than a twentieth.
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

_STRAYS_BELOW = 20
"""Strays are fewer than one in so many events."""

_LEAST_GAP = 365 * MICROSECONDS_PER_DAY
"""Microseconds that a gap exceeds which parts strays from the others: seasons are closer."""


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
        is_stray: within the bounds, but beyond a long gap.
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

    Times of which most are before 1990 count from another origin, and are meant so. A long gap is
    longer than a year and than the span of the events without the first and the last twentieth.
    The events beyond one are left out if they are fewer than a twentieth; also if they are fewer
    than half and ahead, unless nearly all events are (a twentieth or less is not), and the gap is
    longer than the span before it. Of what is left, the events ahead are left out if they are at
    most a hundredth; where they are more, they are simulated, or this machine's clock is behind.

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
    run = _find_run(np.sort(times[~is_old]), bounds.latest)
    is_far = ~is_old & ((times < run.earliest) | (times > run.latest))
    is_kept = ~(is_old | is_far)
    is_next = is_kept & is_ahead
    if is_next.sum() > max(_MOST_AHEAD * is_kept.sum(), 1):
        is_next = none
    if (is_next == is_kept).all():
        is_old = is_next = none
    return TimeCheck(is_old, is_next | (is_far & is_ahead), is_far & ~is_ahead)


def _find_run(ordered: NDArray[np.int64], latest: int) -> TimeBounds:
    """Return the first and the last instant of the events that no long gap parts from the most.

    The longest gap is first, so strays that are far enough do not change what else is a stray.

    Args:
        ordered: ascending, at least one.
        latest: the latest instant that is not ahead of the clock.
    """
    gaps = np.diff(ordered)
    not_ahead = int(np.searchsorted(ordered, latest, side="right"))
    first, last = 0, len(ordered) - 1
    while True:
        few = (last - first) // _STRAYS_BELOW
        right = last - few
        # A clock that nearly all events are ahead of shows nothing about them.
        if not_ahead - first > few:
            right = min(right, max(not_ahead - 1, last - (last - first) // 2))
        # The place of a gap is that of the event before it.
        places = np.r_[first : first + few, right:last]
        ends = np.where(places < right, last - few, np.minimum(places, last - few))
        spans = ordered[ends] - ordered[first + few]
        places = places[gaps[places] > np.maximum(spans, _LEAST_GAP)]
        if not len(places):
            break
        place = int(places[np.argmax(gaps[places])])
        if place < right:
            first = place + 1
        else:
            last = place
    return TimeBounds(int(ordered[first]), int(ordered[last]))
