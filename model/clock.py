"""Conversions between epoch microseconds, days and datetimes."""

from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

MICROSECONDS_PER_SECOND = 1_000_000
MICROSECONDS_PER_DAY = 86_400 * MICROSECONDS_PER_SECOND

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def days_between(origin: int, instants: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the days from `origin` to each instant, all given in epoch microseconds.

    The difference is computed in integers, exact to the microsecond: epoch seconds in float32
    would have a spacing of 128 s.
    """
    return (instants - np.int64(origin)) / MICROSECONDS_PER_DAY


def to_datetime(instant: int) -> datetime:
    """Convert epoch microseconds to an aware UTC datetime."""
    return _EPOCH + timedelta(microseconds=instant)


def from_datetime(moment: datetime) -> int:
    """Convert an aware datetime to epoch microseconds.

    Raises:
        ValueError: if `moment` has no UTC offset.
    """
    if moment.tzinfo is None:
        raise ValueError(
            f"a datetime needs a UTC offset, but {moment.isoformat()} has none; add one"
        )
    return (moment - _EPOCH) // _MICROSECOND


def now() -> int:
    """Return the current time in epoch microseconds."""
    return from_datetime(datetime.now(UTC))


FIRST_INSTANT = from_datetime(datetime.min.replace(tzinfo=UTC))
"""The first instant of the year 1, epoch microseconds."""
LAST_INSTANT = from_datetime(datetime.max.replace(tzinfo=UTC))
"""The last instant of the year 9999, epoch microseconds."""
