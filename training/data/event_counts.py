"""Counts of the training events, for the wide part of a recommender."""

from dataclasses import dataclass
from typing import final

import numpy as np
import polars as pl
from jaxtyping import Bool, Float, Int64
from numpy.typing import NDArray

from model.followers import Followers
from model.popularity import Popularity
from model.popularity_table import PopularityTable
from model.wide import EventCounts
from training.data.dataset import Dataset
from training.data.split import Predict, expand_spans, find_basket_ends

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
    rows = len(dataset.catalog) + 1
    pairs = _pair_baskets if predict == "next_basket" else _pair_events
    keys, weights, users = pairs(dataset, np.flatnonzero(counted & (dataset.rows > 0)), rows)
    table = pl.DataFrame({"key": keys, "weight": weights, "fold": assign_folds(users)})
    sums = table.group_by("key", maintain_order=True).agg(
        pl.col("weight").sum().alias("all"),
        *(
            pl.col("weight").filter(pl.col("fold") == fold).sum().alias(f"fold{fold}")
            for fold in range(1, FOLDS + 1)
        ),
    )
    least = LEAST_WEIGHT if predict == "next_basket" else 0.0
    sums = sums.filter(pl.col("all") >= least)
    items, followers = np.divmod(sums["key"].to_numpy(), rows)
    every = sums["all"].to_numpy()
    without = [every - sums[f"fold{fold}"].to_numpy() for fold in range(1, FOLDS + 1)]
    weights = np.stack([every, *without])
    # In each table: a smaller weight would reveal that the users who are left out have the pair.
    return PairCounts(items, followers, np.where(weights >= least, weights, 0.0), rows)


def rank_followers(pairs: PairCounts) -> Followers:
    """Rank the followers of every item, in one table of all users and one without each fold."""
    return Followers.stack(
        [
            Followers.rank(pairs.items, pairs.followers, weights, rows=pairs.rows)
            for weights in pairs.weights
        ]
    )


Pairs = tuple[Int64[np.ndarray, " pairs"], Float[np.ndarray, " pairs"], Int64[np.ndarray, " pairs"]]
"""Key of item and follower, weight, and user of each pair."""


def _pair_events(dataset: Dataset, events: NDArray[np.int64], rows: int) -> Pairs:
    """Pair every event with the three after it, by weights that fall with the distance."""
    keys, weights, users = [], [], []
    for distance, weight in enumerate(WEIGHTS, start=1):
        earlier, later = events[:-distance], events[distance:]
        same_user = dataset.user_of[earlier] == dataset.user_of[later]
        earlier, later = earlier[same_user], later[same_user]
        keys.append(dataset.rows[earlier].astype(np.int64) * rows + dataset.rows[later])
        weights.append(np.full(len(earlier), weight))
        users.append(dataset.user_of[earlier])
    return np.concatenate(keys), np.concatenate(weights), np.concatenate(users)


def _pair_baskets(dataset: Dataset, events: NDArray[np.int64], rows: int) -> Pairs:
    """Pair every event with each of the same user's next basket."""
    known = dataset.known
    ends = find_basket_ends(known)
    index = dataset.known_before[events]
    next_ends = ends[np.minimum(ends, len(known) - 1)[index]]
    sizes = next_ends - ends[index]
    begins = np.flatnonzero(np.diff(ends, prepend=-1))
    own_sizes = np.diff(np.append(begins, len(known)))
    own = own_sizes[np.searchsorted(begins, index, side="right") - 1]
    user = known.user_of
    is_counted = np.zeros(len(known), dtype=np.bool_)
    is_counted[index] = True
    follows = ends[index] < len(known)
    follows[follows] &= user[ends[index[follows]]] == user[index[follows]]
    follows[follows] &= is_counted[ends[index[follows]]]
    follows &= own * sizes <= MOST_PAIRS
    index, sizes = index[follows], sizes[follows]
    later = expand_spans(ends[index], sizes)
    earlier = np.repeat(index, sizes)
    keys = known.rows[earlier].astype(np.int64) * rows + known.rows[later]
    return keys, np.ones(len(keys)), user[earlier]
