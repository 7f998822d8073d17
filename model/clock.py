"""The one place where instants become numbers a model reads, and texts become instants."""

from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

MICROSECONDS_PER_SECOND = 1_000_000
MICROSECONDS_PER_DAY = 86_400 * MICROSECONDS_PER_SECOND

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def days_between(origin: int, instants: NDArray[np.int64]) -> NDArray[np.float64]:
    """Days from `origin` to each instant (epoch microseconds), exact to the microsecond.

    The difference is taken in integers: epoch seconds in float32 would be 128 s apart.
    """
    return (instants - np.int64(origin)) / MICROSECONDS_PER_DAY


def to_datetime(instant: int) -> datetime:
    """Epoch microseconds as an aware UTC datetime."""
    return _EPOCH + timedelta(microseconds=instant)


def from_datetime(moment: datetime) -> int:
    """An aware datetime as epoch microseconds.

    Raises:
        ValueError: if `moment` carries no offset from UTC.
    """
    if moment.tzinfo is None:
        raise ValueError(
            f"an instant needs an offset from UTC, but got {moment.isoformat()}; add one"
        )
    return (moment - _EPOCH) // timedelta(microseconds=1)


def now() -> int:
    """This instant as epoch microseconds."""
    return from_datetime(datetime.now(UTC))
