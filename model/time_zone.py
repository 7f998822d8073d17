"""Time zones of the IANA database, as the offsets from UTC over time."""

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Annotated, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
from jaxtyping import Int64
from numpy.typing import NDArray
from pydantic import AfterValidator

from model import clock

_YEARS = (1900, 2200)
"""Offsets are constant before the first of these years and from the last one on."""

_STEP = timedelta(days=7)
"""Offsets are compared this far apart; no zone changes its offset and back sooner."""


def check_time_zone(name: str) -> str:
    """Check that a name is that of a time zone.

    Raises:
        ValueError: if it is not.
    """
    try:
        ZoneInfo(name)
    except (KeyError, OSError, ValueError) as error:
        raise ValueError(
            "a time zone is a name of the IANA database, such as Europe/London or UTC, but got "
            f"{name!r}; correct it"
        ) from error
    return name


TimeZoneName = Annotated[str, AfterValidator(check_time_zone)]
"""A name of the IANA database, such as "Europe/London"."""


class ZoneOffsets(NamedTuple):
    """The offsets of a time zone from UTC, daylight saving included.

    Attributes:
        changes: instants at which the offset changes, ascending, epoch microseconds.
        offsets: microseconds to add to UTC: before the first change, and from each change on.
    """

    changes: Int64[np.ndarray, " changes"]
    offsets: Int64[np.ndarray, " changes+1"]

    def to_local(self, instants: Int64[np.ndarray, "*shape"]) -> Int64[np.ndarray, "*shape"]:
        """Convert epoch microseconds to what they would be if the local clock showed UTC."""
        local: NDArray[np.int64] = (
            instants + self.offsets[np.searchsorted(self.changes, instants, side="right")]
        )
        return local


@lru_cache(maxsize=8)
def find_offsets(name: str) -> ZoneOffsets:
    """Find the offsets of a time zone, to the second.

    Raises:
        ValueError: if there is no such zone.
    """
    zone = ZoneInfo(check_time_zone(name))

    def offset_at(moment: datetime) -> timedelta:
        return moment.astimezone(zone).utcoffset() or timedelta()

    moment, end = (datetime(year, 1, 1, tzinfo=UTC) for year in _YEARS)
    changes: list[int] = []
    offsets = [offset_at(moment)]
    while moment < end:
        later = moment + _STEP
        if offset_at(later) != offsets[-1]:
            before, after = moment, later
            while after - before > timedelta(seconds=1):
                middle = before + (after - before) // 2
                if offset_at(middle) == offsets[-1]:
                    before = middle
                else:
                    after = middle
            # Offsets change at whole seconds.
            changes.append(clock.from_datetime(after.replace(microsecond=0)))
            offsets.append(offset_at(later))
        moment = later
    microseconds = [offset // timedelta(microseconds=1) for offset in offsets]
    return ZoneOffsets(np.array(changes, np.int64), np.array(microseconds, np.int64))
