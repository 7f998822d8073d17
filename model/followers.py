"""What followed each item, counted over all users: a sparse item-to-item table."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import final

import numpy as np
import polars as pl
import torch
from jaxtyping import Float, Int64
from numpy.typing import NDArray
from torch import Tensor

KEPT = 32
"""Followers of an item that are kept, the most frequent ones."""

_UNSEEN = 2.0
"""Added to an item's total, for followers that were not seen yet."""


@final
@dataclass(frozen=True, eq=False)
class Followers:
    """The most frequent followers of every item. Immutable, and shared by copies of a model.

    The first table counts all users. In training, each further one leaves out a part of the users:
    a history reads a table without its own user, because it would find its own targets in the
    first one.

    Attributes:
        rows: catalog rows, 0 where an item has fewer followers; row 0 is padding.
        log_shares: logarithm of each follower's share of what followed; 0 beside padding.
        log_counts: log(1 + how much was counted) per item.
    """

    rows: Int64[Tensor, "tables items kept"] = field(repr=False)
    log_shares: Float[Tensor, "tables items kept"] = field(repr=False)
    log_counts: Float[Tensor, "tables items"] = field(repr=False)

    @classmethod
    def rank(
        cls,
        items: NDArray[np.int64],
        followers: NDArray[np.int64],
        weights: NDArray[np.float64],
        *,
        rows: int,
        kept: int = KEPT,
        totals: NDArray[np.float64] | None = None,
    ) -> "Followers":
        """Keep the followers with the largest weights of every item.

        Args:
            items: catalog rows; each pair of item and follower appears once.
            followers: catalog rows.
            weights: how often the follower came after the item.
            rows: catalog rows, padding included.
            totals: sums of the weights of every item; by default of those given.
        """
        if totals is None:
            totals = np.bincount(items, weights, minlength=rows).astype(np.float64)
        best = (
            pl.DataFrame({"item": items, "follower": followers, "weight": weights})
            .filter(pl.col("weight") > 0)
            .sort("item", "weight", "follower", descending=[False, True, False])
            .with_columns(rank=pl.int_range(pl.len()).over("item"))
            .filter(pl.col("rank") < kept)
        )
        at = best["item"].to_numpy(), best["rank"].to_numpy()
        table = np.zeros((rows, kept), dtype=np.int64)
        table[at] = best["follower"].to_numpy()
        log_shares = np.zeros((rows, kept), dtype=np.float32)
        log_shares[at] = np.log(best["weight"].to_numpy() / (totals[at[0]] + _UNSEEN))
        return cls(
            torch.from_numpy(table)[None],
            torch.from_numpy(log_shares)[None],
            torch.from_numpy(np.log1p(totals).astype(np.float32))[None],
        )

    @classmethod
    def stack(cls, tables: Sequence["Followers"]) -> "Followers":
        """Put several tables into one object."""
        return cls(
            torch.cat([each.rows for each in tables]),
            torch.cat([each.log_shares for each in tables]),
            torch.cat([each.log_counts for each in tables]),
        )

    def keep_first(self) -> "Followers":
        """Keep the table of all users only."""
        return Followers(self.rows[:1], self.log_shares[:1], self.log_counts[:1])

    def to(self, device: torch.device) -> "Followers":
        """Copy the tables to a device."""
        return Followers(
            self.rows.to(device), self.log_shares.to(device), self.log_counts.to(device)
        )

    def __deepcopy__(self, memo: dict[int, object]) -> "Followers":
        return self
