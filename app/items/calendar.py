"""Days, weeks and months of the UTC calendar, numbered one after the other."""

from datetime import date
from typing import Literal

from model.clock import MICROSECONDS_PER_DAY

Step = Literal["day", "week", "month"]
"""How long a bucket of time is: weeks begin on Monday, months on their first."""

_EPOCH = date(1970, 1, 1).toordinal()


def number_of(instant: int, step: Step) -> int:
    """The number of the bucket that an instant (epoch microseconds) falls into."""
    # The first day there is, that of the ordinal 1, was a Monday.
    ordinal = instant // MICROSECONDS_PER_DAY + _EPOCH
    if step == "day":
        return ordinal
    if step == "week":
        return (ordinal - 1) // 7
    day = date.fromordinal(ordinal)
    return day.year * 12 + day.month - 1


def start_of(number: int, step: Step) -> int:
    """When the bucket of a number begins, epoch microseconds."""
    if step == "day":
        ordinal = number
    elif step == "week":
        ordinal = number * 7 + 1
    else:
        ordinal = date(number // 12, number % 12 + 1, 1).toordinal()
    return (ordinal - _EPOCH) * MICROSECONDS_PER_DAY
