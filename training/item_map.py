"""The map of a bundle's items by t-SNE, which keeps near items near."""

import numpy as np
import torch
from numpy.typing import NDArray

from model.bundle.item_map_file import ItemMap
from model.inference.item_map import measure_kept_neighbours, select_popular
from model.recommender import Recommender

LEAST_ITEMS = 50
"""Fewer items have too few neighbours for the perplexity, and need no map."""

_ITERATIONS = 500
_DIGITS = 5


def compute_item_map(
    recommender: Recommender, popularity: NDArray[np.int64], *, items: int, seed: int = 0
) -> ItemMap | None:
    """Compute a map of the most popular items by the cosine of their vectors.

    Args:
        popularity: events of each item, in the order of the catalog.
        items: how many are on the map, at most.

    Returns:
        None where the recommender learns no item vectors, or fewer than 50 items are mapped. The
        service then projects them on principal components.
    """
    rows = select_popular(popularity, items)
    if not recommender.encoder.has_item_space or len(rows) < LEAST_ITEMS:
        return None
    # Half a second to import.
    from sklearn.manifold import TSNE  # noqa: PLC0415

    vectors = recommender.items.weight.detach().cpu()[1:][torch.from_numpy(rows)]
    directions = torch.nn.functional.normalize(vectors, dim=-1)
    # Of directions the Euclidean neighbours are those by cosine. Random, as components are close
    # to equal: the start of one direction would depend on rounding.
    projection = TSNE(init="random", max_iter=_ITERATIONS, random_state=seed, n_jobs=1)
    points = np.round(projection.fit_transform(directions.numpy()), _DIGITS).astype(np.float64)
    kept = measure_kept_neighbours(directions, points)
    return ItemMap("tsne", rows + 1, points, explained=None, neighbours_kept=kept)
