"""A map of the items: their vectors in two dimensions, by principal components."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

MOST_ITEMS = 10_000
"""The most items of a map, the most popular ones; its axes follow from them."""

_NO_VARIANCE = 1e-12
"""Variance below this is rounding: the directions have length 1."""


@dataclass(frozen=True, slots=True)
class ItemMap:
    """Items as points of a plane; items with similar directions lie close together.

    Attributes:
        rows: of the catalog, the most popular first.
        points: one per row: x, y.
        explained: the share of the vectors' variance along x and along y.
    """

    rows: NDArray[np.int64]
    points: NDArray[np.float64]
    explained: tuple[float, float]


@torch.inference_mode()
def draw_map(vectors: Float[Tensor, "items dim"], popularity: NDArray[np.int64]) -> ItemMap:
    """Project the most popular items onto two axes; deterministic.

    Only the direction of a vector counts, as it does for similar items: its length grows with
    popularity, and would dominate the map.

    Args:
        vectors: one for each item, in the order of the catalog, without padding.
        popularity: events of each.
    """
    rows = np.lexsort((np.arange(len(popularity)), -popularity))[:MOST_ITEMS]
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
    return ItemMap(rows + 1, (centred @ axes).numpy(), (float(shares[0]), float(shares[1])))
