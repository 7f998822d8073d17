"""The distinct items of every basket of some histories, as flat arrays."""

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float64, Int64
from torch import Tensor

from model.batch import SequenceBatch
from model.layers.baskets import number_baskets


class BasketItems(NamedTuple):
    """One entry per item of a basket, sorted by history, basket and row.

    A basket holds the events of one history at one instant; an item is in it or not.

    Attributes:
        histories: the history of each entry, numbered in the order of the events.
        baskets: its basket, numbered from 0 within the history, the oldest first.
        rows: its catalog row.
        counts: baskets per history.
    """

    histories: Int64[np.ndarray, " entries"]
    baskets: Int64[np.ndarray, " entries"]
    rows: Int64[np.ndarray, " entries"]
    counts: Int64[np.ndarray, " histories"]

    @classmethod
    def of_events(
        cls,
        rows: Int64[Tensor, " events"],
        times: Int64[Tensor, " events"] | Float64[Tensor, " events"],
        users: Int64[Tensor, " events"],
    ) -> "BasketItems":
        """Read events that are sorted by user, then time; every user is a history."""
        of_events = (rows.cpu().numpy(), times.cpu().numpy(), users.cpu().numpy())
        items, instants, owners = of_events
        first = np.ones(len(items[:1]), dtype=np.bool_)
        begins_history = np.append(first, owners[1:] != owners[:-1])
        begins_basket = begins_history | np.append(first, instants[1:] != instants[:-1])
        numbers = begins_basket.cumsum() - 1
        firsts = numbers[begins_history]
        counts = np.diff(np.append(firsts, begins_basket.sum()))
        order = np.lexsort((items, numbers))
        items, numbers = items[order], numbers[order]
        is_distinct = np.append(first, (items[1:] != items[:-1]) | (numbers[1:] != numbers[:-1]))
        items, numbers = items[is_distinct], numbers[is_distinct]
        histories = np.repeat(np.arange(len(counts)), counts)[numbers]
        return cls(histories, numbers - firsts[histories], items, counts)

    @classmethod
    def of_batch(cls, batch: SequenceBatch) -> "BasketItems":
        """Read the histories of a batch."""
        positions = torch.arange(batch.rows.shape[1], device=batch.rows.device)
        is_event = positions < batch.lengths[:, None]
        samples = torch.arange(len(batch.rows), device=batch.rows.device)
        return cls.of_events(
            batch.rows[is_event], batch.times[is_event], samples.repeat_interleave(batch.lengths)
        )

    @property
    def from_end(self) -> Int64[np.ndarray, " entries"]:
        """How many baskets of its history follow that of each entry."""
        following: Int64[np.ndarray, " entries"] = self.counts[self.histories] - 1 - self.baskets
        return following

    def divide_by_event(
        self, batch: SequenceBatch, weights: Float64[np.ndarray, "entries *items"]
    ) -> Float64[Tensor, "len *items"]:
        """Divide the weights of the entries of a single history among its events.

        Events of one item in one basket have equal shares.

        Args:
            batch: the history that the entries are of.
        """
        rows, baskets = (one[0].cpu().numpy() for one in (batch.rows, number_baskets(batch.times)))
        width = self.rows.max() + 1
        entry_of = np.searchsorted(self.baskets * width + self.rows, baskets * width + rows)
        of_events = (weights.T / np.bincount(entry_of)).T[entry_of]
        return torch.from_numpy(of_events)

    def divide_own(
        self,
        batch: SequenceBatch,
        weights: Float64[np.ndarray, " entries"],
        rows: Int64[Tensor, " items"],
    ) -> Float64[Tensor, "items len"]:
        """Divide weights as `divide_by_event` does; each event has a part of its own item alone."""
        of_events = self.divide_by_event(batch, weights)
        return of_events.where(batch.rows[0] == rows[:, None], 0.0)
