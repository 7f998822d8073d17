"""A map of the items of a bundle without one: their vectors on two principal components."""

import numpy as np
import torch
from jaxtyping import Float, Int64
from numpy.typing import NDArray
from torch import Tensor

from model.bundle.item_map_file import ItemMap

MOST_ITEMS = 10_000
"""The most items of a map, the most popular ones; the positions follow from all of them."""
NEIGHBOURS = 10
"""Nearest neighbours of an item that a map should keep."""

_MEASURED_ITEMS = 1_000
_BLOCK_ITEMS = 250
_NO_VARIANCE = 1e-12
"""Variance below this is rounding: the directions have length 1."""


def select_popular(popularity: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """Select the positions of the most popular items; of equal ones the first in the catalog."""
    return np.lexsort((np.arange(len(popularity)), -popularity))[:most]


@torch.inference_mode()
def draw_map(vectors: Float[Tensor, "items dim"], popularity: NDArray[np.int64]) -> ItemMap:
    """Project the most popular items onto two axes; deterministic.

    Only the direction of a vector counts, as it does for similar items: its length grows with
    popularity, and would dominate the map.

    Args:
        vectors: one for each item, in the order of the catalog, without padding.
        popularity: events of each.
    """
    rows = select_popular(popularity, MOST_ITEMS)
    directions = torch.nn.functional.normalize(vectors[torch.from_numpy(rows)].double(), dim=-1)
    centred = directions - directions.mean(0)
    # An exact decomposition: a randomised one would rotate the map from call to call.
    variances, axes = torch.linalg.eigh(centred.T @ centred)
    variances, axes = variances.flip(0).clamp(min=0), axes.flip(1)
    missing = max(0, 2 - len(variances))
    axes = torch.nn.functional.pad(axes[:, :2], (0, missing))
    strongest = axes.gather(0, axes.abs().argmax(0, keepdim=True))
    axes = torch.where(strongest < 0, -axes, axes)
    total = variances.sum()
    shares = torch.nn.functional.pad(variances, (0, missing)) / total
    if total < _NO_VARIANCE:
        shares = torch.zeros_like(shares)
    points = (centred @ axes).numpy()
    return ItemMap(
        method="pca",
        rows=rows + 1,
        points=points,
        explained=(float(shares[0]), float(shares[1])),
        neighbours_kept=measure_kept_neighbours(directions, points),
    )


@torch.inference_mode()
def measure_kept_neighbours(
    directions: Float[Tensor, "items dim"], points: NDArray[np.float64]
) -> float | None:
    """Measure which share of an item's ten nearest neighbours are its ten nearest on a map.

    Measured on up to 1,000 items, evenly spaced in the given order. Without an order of equal
    distances, coinciding items may count as kept or not.

    Args:
        directions: of length 1, so that the nearest are those with the largest cosine.
        points: x and y of each.

    Returns:
        None for ten items or fewer, of which each is a neighbour of each.
    """
    items = len(directions)
    if items <= NEIGHBOURS:
        return None
    count = min(items, _MEASURED_ITEMS)
    measured = torch.arange(count) * items // count
    places = torch.from_numpy(points).double()
    kept = 0
    for begin in range(0, count, _BLOCK_ITEMS):
        block = measured[begin : begin + _BLOCK_ITEMS]
        near = _find_nearest(directions, block)
        near_on_map = _find_nearest(places, block)
        kept += int((near[:, :, None] == near_on_map[:, None, :]).sum())
    return kept / (len(measured) * min(NEIGHBOURS, items - 1))


def _find_nearest(
    places: Float[Tensor, "items dim"], block: Int64[Tensor, " block"]
) -> Int64[Tensor, "block neighbours"]:
    distances = torch.cdist(places[block], places)
    distances[torch.arange(len(block)), block] = torch.inf
    return distances.topk(min(NEIGHBOURS, len(places) - 1), largest=False).indices
