"""Look-up of popularity features: of all items, as of the query time of each query."""

import math
from collections.abc import Iterator
from functools import cached_property, lru_cache
from typing import NamedTuple, final

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from model import accelerators
from model.popularity import FEATURES, Checkpoint, CountedEvents, Popularity

_KEPT_SNAPSHOTS = 8
"""Earlier snapshots whose features a served model keeps, at least."""

_KEPT_FEATURES = 8_000_000
"""Features of earlier snapshots that a served model keeps where that is more: 32 MB, such as 300
snapshots of 3,000 items."""

_MOST_CHECKPOINTS = 64
"""Checkpoints that a served model keeps, at most; there may be more of a small catalog."""

_CHECKPOINT_COUNTS = 4_000_000
"""Decayed counts in the checkpoints of a small catalog, at most: 32 MB, such as 190 checkpoints of
3,000 items."""


class PopularityFeatures(NamedTuple):
    """The popularity features of all items for some queries.

    Attributes:
        table: of several snapshots.
        entry_of: per query, which entry of `table` holds its features.
        latest: the entry of `table` that is as of all events; -1 if none is.
    """

    table: Float[Tensor, "snapshots features rows"]
    entry_of: Int64[Tensor, " queries"]
    latest: int = -1

    def of_items(
        self, rows: Int64[Tensor, "queries *items"]
    ) -> Float[Tensor, "queries *items features"]:
        """Select the features of some items for each query."""
        shape = (-1,) + (1,) * (rows.ndim - 1)
        return self.table.transpose(1, 2)[self.entry_of.view(shape), rows]

    def add_to(
        self,
        scores: Float[Tensor, "queries items"],
        gates: Float[Tensor, "queries features"],
        rows: Int64[Tensor, " items"] | None = None,
    ) -> Float[Tensor, "queries items"]:
        """Add the weighted features to scores, in place.

        Queries of one snapshot share a product; consecutive ones are found fastest. Where shapes
        are fixed, the features of each query are looked up instead.

        Args:
            rows: catalog rows of the scored items; all by default.
        """
        if accelerators.needs_fixed_shapes(scores.device):
            table = self.table if rows is None else self.table[:, :, rows]
            for number in range(table.shape[1]):
                scores.addcmul_(gates[:, number, None], table[self.entry_of, number])
            return scores
        for part, features in self.iter_snapshots():
            of_rows = features if rows is None else features[:, rows]
            scores[part].addmm_(gates[part], of_rows)
        return scores

    def sum_weighted(
        self,
        shares: Float[Tensor, "queries items"],
        rows: Int64[Tensor, " items"] | None = None,
    ) -> Float[Tensor, "queries features"]:
        """Sum the features over items, weighted by each query's shares.

        Args:
            rows: catalog rows of the items; all by default.
        """
        if accelerators.needs_fixed_shapes(shares.device):
            # One feature at a time: all of each query are several times the memory of the shares.
            table = self.table if rows is None else self.table[:, :, rows]
            return torch.stack(
                [
                    (shares * table[self.entry_of, number]).sum(-1)
                    for number in range(table.shape[1])
                ],
                dim=-1,
            )
        sums = shares.new_empty(len(shares), self.table.shape[1])
        for part, features in self.iter_snapshots():
            of_rows = features if rows is None else features[:, rows]
            torch.mm(shares[part], of_rows.T, out=sums[part])
        return sums

    def iter_snapshots(self) -> Iterator[tuple[slice, Float[Tensor, "features rows"]]]:
        """Yield runs of queries of one snapshot, and its features."""
        begin = 0
        distinct, counts = torch.unique_consecutive(self.entry_of, return_counts=True)
        for snapshot, count in zip(distinct.tolist(), counts.tolist(), strict=True):
            yield slice(begin, begin + count), self.table[snapshot]
            begin += count

    def select(self, queries: slice | Int64[Tensor, " selected"]) -> "PopularityFeatures":
        """Select some queries."""
        return self._replace(entry_of=self.entry_of[queries])


@final
class PopularityTable:
    """Looks up the popularity features that a model reads at some instants.

    Safe to share between threads. Copies of a model share it.

    Args:
        popularity: counts of events.
        whole: compute all snapshots at once and keep them, as training needs; otherwise the last
            one, and others when they are looked up.
        base: what was counted in training, where `popularity` continues it; by default the same.
    """

    def __init__(
        self, popularity: Popularity, *, whole: bool = False, base: Popularity | None = None
    ) -> None:
        self.popularity = popularity
        self._whole: Tensor | None = None
        if whole:
            self._whole = popularity.compute_features(range(popularity.snapshots))
            self._latest = self._whole[-1].clone()
        else:
            self._latest = popularity.compute_state().features()
        self._base = base or popularity
        self._first_counts: Tensor | None = None
        self._checkpoints: tuple[Checkpoint, ...] = ()
        kept = max(_KEPT_SNAPSHOTS, _KEPT_FEATURES // self._latest.numel())
        self._compute_one = lru_cache(maxsize=kept)(self._compute_from_checkpoint)

    def __deepcopy__(self, memo: dict[int, object]) -> "PopularityTable":
        return self

    @property
    def base(self) -> Popularity:
        """What was counted in training."""
        return self._base

    def count_on(self, later: CountedEvents) -> "PopularityTable":
        """Count events after those of the training, in place of any that were counted before."""
        return PopularityTable(self._base.extend(later), base=self._base)

    def count_first_events(self, rows: Int64[Tensor, " items"]) -> Int64[Tensor, " items"]:
        """Count the events of items in the first span of time that has any of the item."""
        if self._first_counts is None or self._first_counts.device != rows.device:
            self._first_counts = self.popularity.first_counts.to(rows.device)
        return self._first_counts[rows]

    @property
    def latest(self) -> Float[Tensor, "features rows"]:
        """The features as of all events."""
        return self._latest

    def look_up(self, instants: Int64[Tensor, " queries"]) -> PopularityFeatures:
        """Look up the features at some instants, epoch microseconds."""
        if self._whole is not None:
            self._whole = self._whole.to(instants.device)
            found = self.popularity.find(instants)
            return PopularityFeatures(self._whole, found, self.popularity.last)
        if int(instants.min()) >= self.popularity.end_at:
            # What serving asks for, as a rule.
            return PopularityFeatures(self._latest.unsqueeze(0), torch.zeros_like(instants), 0)
        snapshots = self.popularity.find(instants)
        requested, last = sorted(set(snapshots.tolist())), self.popularity.last
        features = [self._latest if one == last else self._compute_one(one) for one in requested]
        # A single snapshot is not copied: it has a line per feature of the whole catalog.
        table = features[0].unsqueeze(0) if len(features) == 1 else torch.stack(features)
        entry_of = torch.searchsorted(snapshots.new_tensor(requested), snapshots)
        return PopularityFeatures(
            table, entry_of, len(requested) - 1 if requested[-1] == last else -1
        )

    def _compute_from_checkpoint(self, snapshot: int) -> Float[Tensor, "features rows"]:
        """Compute the features at a snapshot from the nearest earlier checkpoint.

        Checkpoints are computed when first needed.
        """
        popularity, step = self.popularity, self._checkpoint_step
        if not self._checkpoints:
            marks = range(0, popularity.snapshots, step)
            self._checkpoints = tuple(popularity.iter_checkpoints(marks))
        nearest = self._checkpoints[snapshot // step]
        (reached,) = popularity.iter_checkpoints([snapshot], nearest)
        return reached.state.features()

    @cached_property
    def _checkpoint_step(self) -> int:
        """The number of snapshots from one checkpoint to the next.

        There are as many checkpoints as snapshots between two of them, but no more than a few dozen
        where a service counts on for long. A small catalog has more, as many as its budget holds,
        unless fewer counts than items would lie between two of them on average: to add fewer saves
        nothing beside the decay of all items.
        """
        snapshots, rows = self.popularity.snapshots, self.popularity.rows
        step = max(math.isqrt(snapshots), snapshots // _MOST_CHECKPOINTS, 1)
        affordable = _CHECKPOINT_COUNTS // ((FEATURES - 1) * rows)
        useful = len(self.popularity.counts) // rows
        return min(step, math.ceil(snapshots / max(min(affordable, useful), 1)))
