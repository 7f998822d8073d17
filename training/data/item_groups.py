"""Groups of items, for encoders that tell them apart: by their categories, or by their company."""

from collections import Counter
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from model.errors import TrainingError
from training.data.dataset import Dataset

GroupSource = Literal["categories", "clusters"]

REACH = 5
"""Events apart at which two items of one history still stand together."""


@dataclass(frozen=True)
class GroupMembership:
    """Which groups every catalogue row belongs to.

    Attributes:
        values: rows x groups, 1 where the row's item belongs; row 0, padding, belongs to none.
        names: of the groups.
    """

    values: NDArray[np.float32]
    names: tuple[str, ...]


def assign_groups(
    dataset: Dataset, is_training: NDArray[np.bool_], *, groups: int, source: GroupSource
) -> GroupMembership:
    """So many groups of the catalogue's items, from its training events; every item is in one.

    "categories": the categories with the most training events, an item in each it has, and "other"
    for items left without one. "clusters": items that stand close together in histories, each in
    one group, the group with the most training events first.

    Raises:
        TrainingError: if there are fewer groups to be found.
    """
    if source == "categories":
        return _by_category(dataset, is_training, groups)
    return _by_company(dataset, is_training, groups)


def _by_category(dataset: Dataset, is_training: NDArray[np.bool_], groups: int) -> GroupMembership:
    categories = dataset.catalog.categories
    events = _events_per_row(dataset, is_training)
    counts: Counter[str] = Counter()
    for row, names in enumerate(categories, start=1):
        counts.update(dict.fromkeys(names, int(events[row])))
    by_count = sorted(counts, key=lambda name: (-counts[name], name))
    is_rest = len(by_count) > groups or not all(categories)
    kept = by_count[: groups - is_rest]
    if len(kept) + is_rest < groups:
        raise TrainingError(
            f"{groups} groups need as many categories, but the catalogue has {len(by_count)}; "
            f"take data.groups = 'clusters', or set modulation.groups to {len(kept) + is_rest}"
        )
    values = np.zeros((len(categories) + 1, groups), dtype=np.float32)
    column = {name: number for number, name in enumerate(kept)}
    for row, names in enumerate(categories, start=1):
        values[row, [column[name] for name in names if name in column]] = 1
    if is_rest:
        values[1:, -1] = ~values[1:].any(axis=1)
    return GroupMembership(values, (*kept, *(["other"] if is_rest else [])))


def _by_company(dataset: Dataset, is_training: NDArray[np.bool_], groups: int) -> GroupMembership:
    # Loads slowly, and most recipes want no groups.
    from sklearn.cluster import KMeans  # noqa: PLC0415

    places = _places(dataset, is_training, groups)
    distinct = len(np.unique(places.round(6), axis=0))
    if distinct < groups:
        raise TrainingError(
            f"{groups} clusters need as many items that histories tell apart, but they tell apart "
            f"{distinct}; lower modulation.groups"
        )
    found = KMeans(groups, n_init=4, random_state=0).fit_predict(places)
    events = np.bincount(found, _events_per_row(dataset, is_training)[1:], minlength=groups)
    rank = np.empty(groups, dtype=np.int64)
    rank[np.argsort(-events, kind="stable")] = np.arange(groups)
    values = np.zeros((len(places) + 1, groups), dtype=np.float32)
    values[np.arange(1, len(values)), rank[found]] = 1
    return GroupMembership(values, tuple(f"cluster {number}" for number in range(1, groups + 1)))


def _places(dataset: Dataset, is_training: NDArray[np.bool_], dim: int) -> NDArray[np.float64]:
    """A point of the unit sphere for every item, near to those of the items it stands with.

    Paper: spectral clustering (Ng, Jordan and Weiss 2001), its degrees regularised by their mean
        (Chaudhuri, Chung and Tsiatas 2012), without which every rare pair of items that meet only
        each other would be a cluster of its own.
    """
    from scipy.sparse import coo_matrix, diags  # noqa: PLC0415
    from sklearn.utils.extmath import randomized_svd  # noqa: PLC0415

    learned = is_training & (dataset.rows > 0)
    items, users = dataset.rows[learned] - 1, dataset.user_of[learned]
    firsts, seconds, weights = [], [], []
    for apart in range(1, REACH + 1):
        together = (users[apart:] == users[:-apart]) & (items[apart:] != items[:-apart])
        firsts.append(items[:-apart][together])
        seconds.append(items[apart:][together])
        weights.append(np.full(together.sum(), 1 / apart))
    count = len(dataset.catalog)
    pairs = (np.concatenate(weights), (np.concatenate(firsts), np.concatenate(seconds)))
    met = coo_matrix(pairs, shape=(count, count)).tocsr()
    met = met + met.T
    degrees = np.asarray(met.sum(axis=1)).ravel()
    scale = diags((degrees + max(degrees.mean(), 1e-9)) ** -0.5)
    vectors, values, _ = randomized_svd(scale @ met @ scale, min(dim, count), random_state=0)
    places = vectors * values
    lengths = np.linalg.norm(places, axis=1, keepdims=True)
    return np.asarray(places / np.maximum(lengths, 1e-12))


def _events_per_row(dataset: Dataset, is_training: NDArray[np.bool_]) -> NDArray[np.int64]:
    return np.bincount(dataset.rows[is_training], minlength=len(dataset.catalog) + 1)
