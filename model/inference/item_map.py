"""A map of the items: their vectors in two dimensions, by principal components."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

MOST_ITEMS = 10_000
"""Items that a map holds and its axes follow from: the most popular ones."""

_NOTHING = 1e-12
"""Variance that comes of rounding alone, as directions have the length 1."""


@dataclass(frozen=True, slots=True)
class ItemMap:
    """Items as points of a plane: those in the same direction of the item space lie together.

    Attributes:
        rows: of the catalogue, the most popular first.
        points: where each lies.
        explained: the share of the vectors' variance along either axis.
    """

    rows: NDArray[np.int64]
    points: NDArray[np.float64]
    explained: tuple[float, float]


@torch.inference_mode()
def draw(vectors: Float[Tensor, "items dim"], popularity: NDArray[np.int64]) -> ItemMap:
    """The map of the most popular items; the same vectors always give the same one.

    Vectors count by their direction alone, as they do for items that are alike: their length tells
    how popular an item is, and would be most of a map.

    Args:
        vectors: one for each item, in the order of the catalogue, without padding.
        popularity: events of each.
    """
    rows = np.lexsort((np.arange(len(popularity)), -popularity))[:MOST_ITEMS]
    directions = torch.nn.functional.normalize(vectors[torch.from_numpy(rows)].double(), dim=-1)
    centred = directions - directions.mean(0)
    # Exact, where a randomised decomposition would turn the map at every drawing.
    variances, axes = torch.linalg.eigh(centred.T @ centred)
    variances, axes = variances.flip(0).clamp(min=0), axes.flip(1)
    missing = max(0, 2 - len(variances))
    axes = torch.nn.functional.pad(axes[:, :2], (0, missing))
    strongest = axes.gather(0, axes.abs().argmax(0, keepdim=True))
    axes = torch.where(strongest < 0, -axes, axes)
    whole = variances.sum()
    shares = torch.nn.functional.pad(variances, (0, missing)) / whole
    if whole < _NOTHING:
        shares = torch.zeros_like(shares)
    return ItemMap(rows + 1, (centred @ axes).numpy(), (float(shares[0]), float(shares[1])))
