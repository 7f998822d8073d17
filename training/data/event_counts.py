"""Counts of the training events, for the wide part of a recommender."""

import functools
import operator
from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Bool, Float, Int64
from numpy.typing import NDArray
from scipy.sparse import csr_array

from model.followers import Followers
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


@final
@dataclass(frozen=True, eq=False)
class PairCounts:
    """How often an item followed another one; each pair of items appears once.

    Attributes:
        items: catalog rows.
        followers: catalog rows.
        weights: table 0 counts all users, each further one leaves out a part of them.
        rows: catalog rows, padding included.
    """

    items: Int64[np.ndarray, " pairs"]
    followers: Int64[np.ndarray, " pairs"]
    weights: Float[np.ndarray, "tables pairs"]
    rows: int


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
    """Count what followed each item: the next three events, or the next basket."""
    events = np.flatnonzero(counted & (dataset.rows > 0))
    count = _count_next_baskets if predict == "next_basket" else _count_next_events
    folds = assign_folds(dataset.user_of[events])
    by_fold = [count(dataset, events[folds == fold]) for fold in range(1, FOLDS + 1)]
    every = functools.reduce(operator.add, by_fold).tocoo()
    least = LEAST_WEIGHT if predict == "next_basket" else 0.0
    kept = every.data >= least
    without = [every.data - _select_entries(each, every.row, every.col) for each in by_fold]
    weights = np.stack([every.data, *without])[:, kept]
    # In each table: a smaller weight would reveal that the users who are left out have the pair.
    weights = np.where(weights >= least, weights, 0.0)
    items, followers = (rows[kept].astype(np.int64) for rows in (every.row, every.col))
    return PairCounts(items, followers, weights, rows=len(dataset.catalog) + 1)


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
    return Followers.stack(
        [
            Followers.rank(pairs.items, pairs.followers, weights, rows=pairs.rows)
            for weights in pairs.weights
        ]
    )


def _count_next_events(dataset: Dataset, events: NDArray[np.int64]) -> csr_array:
    """Count the three events after every event, by weights that fall with the distance."""
    rows, users = dataset.rows[events], dataset.user_of[events]
    size = len(dataset.catalog) + 1
    counts = csr_array((size, size))
    for distance, weight in enumerate(WEIGHTS, start=1):
        earlier, later = rows[:-distance], rows[distance:]
        same_user = users[:-distance] == users[distance:]
        entries = np.full(np.count_nonzero(same_user), weight)
        at = earlier[same_user], later[same_user]
        counts = counts + csr_array((entries, at), shape=counts.shape)
    return counts


def _count_next_baskets(dataset: Dataset, events: NDArray[np.int64]) -> csr_array:
    """Count the events of the same user's next basket after every event.

    As a product of two tables, of the items of each basket and of the basket after it.
    """
    rows, users = dataset.rows[events], dataset.user_of[events]
    size = len(dataset.catalog) + 1
    begins = np.ones(len(events), dtype=np.bool_)
    begins[1:] = (np.diff(dataset.times[events]) != 0) | (np.diff(users) != 0)
    offsets = np.append(np.flatnonzero(begins), len(events))
    baskets = csr_array((np.ones(len(events)), rows, offsets), shape=(len(offsets) - 1, size))
    sizes, firsts = np.diff(offsets), offsets[:-1]
    is_followed = (users[firsts[:-1]] == users[firsts[1:]]) & (sizes[:-1] * sizes[1:] <= MOST_PAIRS)
    earlier = np.flatnonzero(is_followed)
    return csr_array(baskets[earlier].T @ baskets[earlier + 1])
