"""Groups of items, by category or by co-occurrence, for encoders with intensities of groups."""

from collections import Counter
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from model.errors import TrainingError
from training.data.dataset import Dataset

GroupSource = Literal["categories", "clusters"]

REACH = 5
"""The greatest distance, in events, at which two items of a history co-occur."""


@dataclass(frozen=True)
class GroupMembership:
    """The groups of every catalog row.

    Attributes:
        values: rows x groups, 1 where the item belongs to the group; row 0, padding, has none.
        names: of the groups.
    """

    values: NDArray[np.float32]
    names: tuple[str, ...]


def assign_groups(
    dataset: Dataset, is_training: NDArray[np.bool_], *, groups: int, source: GroupSource
) -> GroupMembership:
    """Assign the items of the catalog to `groups` groups, by the training events.

    Args:
        source: "categories" makes one group of each of the categories with the most training
            events; an item belongs to every one that it has, or else to "other". "clusters" groups
            items that co-occur in histories; each item belongs to one group, the groups ordered by
            training events.

    Raises:
        TrainingError: if there are too few categories, or too few distinct items for clusters.
    """
    if source == "categories":
        return _group_by_category(dataset, is_training, groups)
    return _cluster_items(dataset, is_training, groups)


def _group_by_category(
    dataset: Dataset, is_training: NDArray[np.bool_], groups: int
) -> GroupMembership:
    categories = dataset.catalog.categories
    events = _count_events(dataset, is_training)
    counts: Counter[str] = Counter()
    for row, names in enumerate(categories, start=1):
        counts.update(dict.fromkeys(names, int(events[row])))
    by_count = sorted(counts, key=lambda name: (-counts[name], name))
    is_rest = len(by_count) > groups or not all(categories)
    kept = by_count[: groups - is_rest]
    if len(kept) + is_rest < groups:
        raise TrainingError(
            f"{groups} groups need as many categories, but the catalog has {len(by_count)}; "
            f"take data.groups = 'clusters', or set modulation.groups to {len(kept) + is_rest}"
        )
    values = np.zeros((len(categories) + 1, groups), dtype=np.float32)
    column = {name: number for number, name in enumerate(kept)}
    for row, names in enumerate(categories, start=1):
        values[row, [column[name] for name in names if name in column]] = 1
    if is_rest:
        values[1:, -1] = ~values[1:].any(axis=1)
    return GroupMembership(values, (*kept, *(["other"] if is_rest else [])))


def _cluster_items(
    dataset: Dataset, is_training: NDArray[np.bool_], groups: int
) -> GroupMembership:
    # Slow to import, and most recipes use no groups.
    from sklearn.cluster import KMeans  # noqa: PLC0415

    points = _embed_items(dataset, is_training, groups)
    distinct = len(np.unique(points.round(6), axis=0))
    if distinct < groups:
        raise TrainingError(
            f"{groups} clusters need as many items that differ in their histories, but only "
            f"{distinct} differ; lower modulation.groups"
        )
    clusters = KMeans(groups, n_init=4, random_state=0).fit_predict(points)
    events = np.bincount(clusters, _count_events(dataset, is_training)[1:], minlength=groups)
    rank = np.empty(groups, dtype=np.int64)
    rank[np.argsort(-events, kind="stable")] = np.arange(groups)
    values = np.zeros((len(points) + 1, groups), dtype=np.float32)
    values[np.arange(1, len(values)), rank[clusters]] = 1
    return GroupMembership(values, tuple(f"cluster {number}" for number in range(1, groups + 1)))


def _embed_items(dataset: Dataset, is_training: NDArray[np.bool_], dim: int) -> NDArray[np.float64]:
    """Embed every item on the unit sphere, close to the items that it co-occurs with.

    Paper: spectral clustering (Ng, Jordan and Weiss 2001), its degrees regularised by their mean
        (Chaudhuri, Chung and Tsiatas 2012); without that, every rare pair of items that co-occur
        only with each other would be a cluster.
    """
    from scipy.sparse import coo_matrix, diags  # noqa: PLC0415
    from sklearn.utils.extmath import randomized_svd  # noqa: PLC0415

    learned = is_training & (dataset.rows > 0)
    items, users = dataset.rows[learned] - 1, dataset.user_of[learned]
    firsts, seconds, weights = [], [], []
    for distance in range(1, REACH + 1):
        together = (users[distance:] == users[:-distance]) & (items[distance:] != items[:-distance])
        firsts.append(items[:-distance][together])
        seconds.append(items[distance:][together])
        weights.append(np.full(together.sum(), 1 / distance))
    count = len(dataset.catalog)
    pairs = (np.concatenate(weights), (np.concatenate(firsts), np.concatenate(seconds)))
    adjacency = coo_matrix(pairs, shape=(count, count)).tocsr()
    adjacency = adjacency + adjacency.T
    degrees = np.asarray(adjacency.sum(axis=1)).ravel()
    scale = diags((degrees + max(degrees.mean(), 1e-9)) ** -0.5)
    vectors, values, _ = randomized_svd(scale @ adjacency @ scale, min(dim, count), random_state=0)
    points = vectors * values
    lengths = np.linalg.norm(points, axis=1, keepdims=True)
    return np.asarray(points / np.maximum(lengths, 1e-12))


def _count_events(dataset: Dataset, is_training: NDArray[np.bool_]) -> NDArray[np.int64]:
    return np.bincount(dataset.rows[is_training], minlength=len(dataset.catalog) + 1)
