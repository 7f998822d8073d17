"""Counts of the training events, for the wide part of a recommender."""

import functools
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import final

import numpy as np
from jaxtyping import Bool, Float, Int64
from numpy.typing import NDArray
from scipy.sparse import csr_array

from model.followers import KEPT, Followers
from model.popularity import Popularity
from model.popularity_table import PopularityTable
from model.wide import EventCounts
from training.data.dataset import Dataset
from training.data.split import Predict

FOLDS = 4
"""Parts of the users that are left out of a table of followers in turn."""

WEIGHTS = (1.0, 1 / 2, 1 / 3)
"""Weights of the events that follow next, second and third."""

MOST_PAIRS = 40_000
"""Pairs of items of two baskets; larger ones, such as a wholesaler's, are not counted."""

LEAST_WEIGHT = 2.0
"""Pairs of baskets that two items must be in to be counted as followers."""

MOST_KEPT = 32_000_000
"""Pairs of items that are kept, about: 56 bytes each while followers are ranked."""

_LEAST_KEPT = 2 * KEPT
"""Followers of every item that are kept in any case."""

_PAIRS_AT_A_TIME = 8_000_000
"""Pairs of events that are counted at a time, about: some hundred megabytes."""


@final
@dataclass(frozen=True, eq=False)
class PairCounts:
    """How often an item followed another one; each pair of items appears once.

    Attributes:
        items: catalog rows.
        followers: catalog rows.
        weights: table 0 counts all users, each further one leaves out a part of them.
        rows: catalog rows, padding included.
        totals: weights of every item in each table, of pairs that are not kept, too; None if all
            are kept.
    """

    items: Int64[np.ndarray, " pairs"]
    followers: Int64[np.ndarray, " pairs"]
    weights: Float[np.ndarray, "tables pairs"]
    rows: int
    totals: Float[np.ndarray, "tables rows"] | None = None


def count_training_events(
    dataset: Dataset, is_training: NDArray[np.bool_], pairs: PairCounts
) -> EventCounts:
    """Count the training events, with tables of followers for every part of the users."""
    return EventCounts(
        popularity=PopularityTable(count_popularity(dataset, is_training), whole=True),
        followers=rank_followers(pairs),
    )


def assign_folds(users: Int64[np.ndarray, " users"]) -> Int64[np.ndarray, " users"]:
    """Return the table of followers that leaves out each user; table 0 counts all users."""
    return users % FOLDS + 1


def count_popularity(dataset: Dataset, counted: Bool[np.ndarray, " events"]) -> Popularity:
    """Count some events per item and span of time."""
    return Popularity.count(
        dataset.rows[counted], dataset.times[counted], rows=len(dataset.catalog) + 1
    )


def count_pairs(
    dataset: Dataset, counted: Bool[np.ndarray, " events"], predict: Predict
) -> PairCounts:
    """Count what followed each item: the next three events, or the next basket.

    Some items at a time: most pairs are met once or twice and are not kept. Of an item with very
    many, in data with many items, those that all users have least often are not kept either.
    """
    events = np.flatnonzero(counted & (dataset.rows > 0))
    count = _NextBaskets if predict == "next_basket" else _NextEvents
    folds = assign_folds(dataset.user_of[events])
    counters = [count(dataset, events[folds == fold]) for fold in range(1, FOLDS + 1)]
    size = len(dataset.catalog) + 1
    least = LEAST_WEIGHT if predict == "next_basket" else 0.0
    most = max(_LEAST_KEPT, MOST_KEPT // size)
    totals = np.zeros((FOLDS + 1, size))
    parts = []
    for items in _divide_items(np.sum([each.pairs_of_items for each in counters], axis=0)):
        part = _count_part(counters, items, least)
        for table, weights in enumerate(part.weights):
            totals[table] += np.bincount(part.items, weights, minlength=size)
        parts.append(_keep_most(part, most))
    return PairCounts(
        items=np.concatenate([part.items for part in parts]),
        followers=np.concatenate([part.followers for part in parts]),
        weights=np.concatenate([part.weights for part in parts], axis=1),
        rows=size,
        totals=totals,
    )


def _divide_items(pairs_of_items: Int64[np.ndarray, " rows"]) -> Iterator[slice]:
    """Divide the catalog rows into runs with about as many pairs of events."""
    numbers = (np.cumsum(pairs_of_items) - pairs_of_items) // _PAIRS_AT_A_TIME
    begins = np.flatnonzero(np.diff(numbers, prepend=-1)).tolist()
    for begin, end in pairwise([*begins, len(pairs_of_items)]):
        yield slice(begin, end)


def _count_part(
    counters: Sequence["_NextBaskets | _NextEvents"], items: slice, least: float
) -> PairCounts:
    """Count the pairs of some items that have at least a weight."""
    by_fold = [counter.count(items) for counter in counters]
    summed = functools.reduce(operator.add, by_fold)
    summed.sort_indices()
    every = summed.tocoo()
    kept = every.data >= least
    without = [every.data - _select_entries(each, every.row, every.col) for each in by_fold]
    weights = np.stack([every.data, *without])[:, kept]
    # In each table: a smaller weight would reveal that the users who are left out have the pair.
    weights = np.where(weights >= least, weights, 0.0)
    rows, followers = (each[kept].astype(np.int64) for each in (every.row, every.col))
    return PairCounts(rows + items.start, followers, weights, rows=every.shape[1])


def _keep_most(pairs: PairCounts, most: int) -> PairCounts:
    """Keep the most frequent followers of every item."""
    if not len(pairs.items) or np.bincount(pairs.items).max() <= most:
        return pairs
    order = np.lexsort((pairs.followers, -pairs.weights[0], pairs.items))
    firsts = np.searchsorted(pairs.items[order], pairs.items[order])
    kept = np.sort(order[np.arange(len(order)) - firsts < most])
    return replace(
        pairs,
        items=pairs.items[kept],
        followers=pairs.followers[kept],
        weights=pairs.weights[:, kept],
    )


def _select_entries(
    matrix: csr_array, lines: NDArray[np.int32], columns: NDArray[np.int32]
) -> Float[np.ndarray, " entries"]:
    """Select some entries of a matrix, in ascending order; all its own must be among them."""
    width = matrix.shape[1]
    own = matrix.tocoo()
    selected = np.zeros(len(lines))
    at = np.searchsorted(
        lines.astype(np.int64) * width + columns, own.row.astype(np.int64) * width + own.col
    )
    selected[at] = own.data
    return selected


def rank_followers(pairs: PairCounts) -> Followers:
    """Rank the followers of every item, in one table of all users and one without each fold."""
    totals = [None] * len(pairs.weights) if pairs.totals is None else pairs.totals
    return Followers.stack(
        [
            Followers.rank(pairs.items, pairs.followers, weights, rows=pairs.rows, totals=total)
            for weights, total in zip(pairs.weights, totals, strict=True)
        ]
    )


@final
class _NextEvents:
    """Counts the three events after every event, by weights that fall with the distance."""

    def __init__(self, dataset: Dataset, events: NDArray[np.int64]) -> None:
        self._rows, self._users = dataset.rows[events], dataset.user_of[events]
        self._size = len(dataset.catalog) + 1
        self._by_item = np.argsort(self._rows, kind="stable")
        counts = np.bincount(self._rows, minlength=self._size)
        self._offsets = np.append(0, np.cumsum(counts))
        self.pairs_of_items = counts * len(WEIGHTS)

    def count(self, items: slice) -> csr_array:
        """Count what followed some items: items x followers."""
        counts = csr_array((items.stop - items.start, self._size))
        first = self._by_item[self._offsets[items.start] : self._offsets[items.stop]]
        for distance, weight in enumerate(WEIGHTS, start=1):
            earlier = first[first < len(self._rows) - distance]
            earlier = earlier[self._users[earlier] == self._users[earlier + distance]]
            at = self._rows[earlier] - items.start, self._rows[earlier + distance]
            entries = np.full(len(earlier), weight)
            counts = counts + csr_array((entries, at), shape=counts.shape)
        return counts


@final
class _NextBaskets:
    """Counts the events of the same user's next basket after every event.

    As a product of two tables, of the items of each basket and of the basket after it.
    """

    def __init__(self, dataset: Dataset, events: NDArray[np.int64]) -> None:
        rows, users = dataset.rows[events], dataset.user_of[events]
        size = len(dataset.catalog) + 1
        begins = np.ones(len(events), dtype=np.bool_)
        begins[1:] = (np.diff(dataset.times[events]) != 0) | (np.diff(users) != 0)
        offsets = np.append(np.flatnonzero(begins), len(events))
        # Single precision is exact for as many pairs as a table can hold.
        ones = np.ones(len(events), dtype=np.float32)
        baskets = csr_array((ones, rows, offsets), shape=(len(offsets) - 1, size))
        sizes, firsts = np.diff(offsets), offsets[:-1]
        is_followed = users[firsts[:-1]] == users[firsts[1:]]
        is_followed &= sizes[:-1] * sizes[1:] <= MOST_PAIRS
        earlier = np.flatnonzero(is_followed)
        self._later = baskets[earlier + 1]
        self._earlier_of_items = baskets[earlier].T.tocsr()
        self.pairs_of_items = (self._earlier_of_items @ sizes[earlier + 1]).astype(np.int64)

    def count(self, items: slice) -> csr_array:
        """Count what followed some items: items x followers."""
        earlier = self._earlier_of_items[items.start : items.stop]
        return csr_array(earlier @ self._later, dtype=np.float64)
