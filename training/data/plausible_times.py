"""Drops events whose times are implausible, before anything is learned from them."""

from typing import NamedTuple, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from model.clock import to_datetime
from model.event_time import TimeCheck, check_times


class LeftOutEvents(NamedTuple):
    """Numbers of events that are not trained on, by the reason in `model.event_time`.

    Attributes:
        first_at: the earliest of them, epoch microseconds; None without any.
        last_at: the latest of them.
    """

    old: int
    ahead: int
    stray: int
    first_at: int | None
    last_at: int | None

    @classmethod
    def of_check(cls, times: NDArray[np.int64], check: TimeCheck) -> Self:
        """Count the events that a check leaves out.

        Args:
            times: what was checked, epoch microseconds.
        """
        others = times[~check.is_plausible]
        return cls(
            old=int(check.is_old.sum()),
            ahead=int(check.is_ahead.sum()),
            stray=int(check.is_stray.sum()),
            first_at=int(others.min()) if len(others) else None,
            last_at=int(others.max()) if len(others) else None,
        )

    @property
    def total(self) -> int:
        """The number of all of them."""
        return self.old + self.ahead + self.stray

    def describe(self) -> str:
        """Describe them in one sentence; empty without any."""
        if self.first_at is None or self.last_at is None:
            return ""
        reasons = {
            "before 1990": self.old,
            "ahead of the clock": self.ahead,
            "far from all others": self.stray,
        }
        counts = ", ".join(f"{count:,} {reason}" for reason, count in reasons.items() if count)
        return (
            f"{self.total:,} events with implausible times ({counts}), from "
            f"{to_datetime(self.first_at):%Y-%m-%d} to {to_datetime(self.last_at):%Y-%m-%d}"
        )


def drop_implausible(events: pl.DataFrame, now: int) -> tuple[pl.DataFrame, LeftOutEvents]:
    """Leave out the events that `check_times` refuses; the others keep their order.

    Args:
        events: as `read_events` returns them.
        now: epoch microseconds.
    """
    times = events["timestamp"].to_physical().to_numpy()
    check = check_times(times, now)
    is_plausible = check.is_plausible
    if is_plausible.all():
        return events, LeftOutEvents(0, 0, 0, None, None)
    return events.filter(pl.Series(is_plausible)), LeftOutEvents.of_check(times, check)
