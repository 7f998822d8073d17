"""Query times as people write them."""

from datetime import UTC, date, datetime, time

from model.clock import (
    FIRST_INSTANT,
    LAST_INSTANT,
    MICROSECONDS_PER_DAY,
    MICROSECONDS_PER_SECOND,
    from_datetime,
)
from model.errors import KairosError

Instant = datetime | date | str | float
"""An aware datetime, a text with an offset, a date (its beginning in UTC), or epoch seconds."""

_MOST_INSTANTS = 80
_WEEK = 7 * MICROSECONDS_PER_DAY
_LEAST_WEEKS, _LEAST_DAYS = 30, 10


def to_instant(value: Instant) -> int:
    """Convert a query time to epoch microseconds.

    Raises:
        KairosError: if it is a time of day without an offset, or none at all.

    Example:
        >>> to_instant("2011-12-01") == to_instant("2011-12-01T01:00+01:00") == 1322697600000000
        True
    """
    try:
        instant = _convert(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise KairosError(
            "a query time is a date, an instant with an offset from UTC, or epoch seconds, but "
            f"got {value!r}; write it like 2011-12-01, 2011-12-01T09:00:00Z or 1322730000"
        ) from error
    if not FIRST_INSTANT <= instant <= LAST_INSTANT:
        raise KairosError(
            f"a query time is within the years 1 to 9999, but got {value!r}; check the unit: epoch "
            "times are in seconds"
        )
    return instant


def _convert(value: Instant) -> int:
    if isinstance(value, str):
        try:
            value = date.fromisoformat(value)
        except ValueError:
            value = datetime.fromisoformat(value)  # type: ignore[arg-type]
    if isinstance(value, datetime):
        return from_datetime(value)
    if isinstance(value, date):
        return from_datetime(datetime.combine(value, time(), UTC))
    return round(float(value) * MICROSECONDS_PER_SECOND)


def space_instants(first: int, last: int) -> list[int]:
    """Return at most 80 equally spaced instants from the first to the last, which is one of them.

    A span of 30 weeks or more is divided into weeks, so that neither the weekday nor the hour
    differs between the instants; one of 10 days or more into days, so that the hour does not.

    Args:
        first: epoch microseconds, not later than `last`.
    """
    span = last - first
    if span >= _LEAST_WEEKS * _WEEK:
        unit = _WEEK
    elif span >= _LEAST_DAYS * MICROSECONDS_PER_DAY:
        unit = MICROSECONDS_PER_DAY
    else:
        unit = MICROSECONDS_PER_SECOND
    step = max(-(-span // ((_MOST_INSTANTS - 1) * unit)), 1) * unit
    return list(range(last, first - 1, -step))[::-1]
