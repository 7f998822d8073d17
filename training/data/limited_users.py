"""Drops what a single user has too much of, and measures how much one user or item has."""

from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from model.event_limits import MOST_OF_ITEM_PER_DAY, MOST_PER_DAY, find_excess

FEW_ITEMS = 20
"""Users of one item are suspicious where there are at least so many items."""
_MOSTLY = 0.8


class ExcessEvents(NamedTuple):
    """Numbers of the events beyond the limits of `model.event_limits`, and of their users."""

    events: int
    users: int

    def describe(self) -> str:
        """Describe them in one sentence; empty without any."""
        if not self.events:
            return ""
        return (
            f"{self.events:,} events of {self.users:,} users beyond {MOST_PER_DAY:,} a day, or "
            f"{MOST_OF_ITEM_PER_DAY} a day of one item"
        )


def drop_excess(events: pl.DataFrame) -> tuple[pl.DataFrame, ExcessEvents]:
    """Leave out the events beyond the limits; the others keep their order.

    Args:
        events: as `read_events` returns them.
    """
    is_excess = find_excess(
        _number(events["user_id"]),
        _number(events["item_id"]),
        events["timestamp"].to_physical().to_numpy(),
    )
    if not is_excess.any():
        return events, ExcessEvents(0, 0)
    mask = pl.Series(is_excess)
    users = events["user_id"].filter(mask).n_unique()
    return events.filter(~mask), ExcessEvents(int(is_excess.sum()), users)


def find_largest_share(events: pl.DataFrame) -> float:
    """Return the share of the events that the user with most of them has."""
    most = events["user_id"].value_counts()["count"].max()
    return float(most) / len(events) if isinstance(most, int) else 0.0


def find_largest_item_share(events: pl.DataFrame) -> float | None:
    """Find an item that is promoted by accounts which have little else.

    Returns:
        The share of the events that are one item's, of users four fifths of whose events are of
        it: of the item with the largest share. None in a catalog of fewer than 20 items, where
        such users are usual.
    """
    if events["item_id"].n_unique() < FEW_ITEMS:
        return None
    pairs = events.group_by("user_id", "item_id").agg(pl.len())
    mostly = pl.col("len") >= _MOSTLY * pl.col("len").sum().over("user_id")
    most = pairs.filter(mostly).group_by("item_id").agg(pl.col("len").sum())["len"].max()
    return float(most) / len(events) if isinstance(most, int) else 0.0


def _number(texts: pl.Series) -> NDArray[np.int64]:
    return texts.rank("dense").to_numpy().astype(np.int64)
