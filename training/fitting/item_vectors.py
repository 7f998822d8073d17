"""Item vectors to start from, by the pairs of items that follow each other."""

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.utils.extmath import randomized_svd
from torch import Tensor

from training.data.event_counts import PairCounts

_SMOOTHING = 0.75
"""Exponent of the items' shares that pairs are compared with; it tempers rare items."""

_DISCOUNT = 1.0
"""Weight that is taken from every pair: those met once are left out. They would put each training
target beside the event before it, and the encoder would learn that this is always so."""

_NOISE = 0.2
"""Length of the random vector that is added to each vector of length 0.9."""


@torch.no_grad()
def initialise_item_vectors(
    vectors: Float[Tensor, "rows dim"], pairs: PairCounts, *, seed: int
) -> None:
    """Replace random item vectors by a factorisation of the pairs, in place.

    An entry of the factorised matrix is log(weight of a pair / weight expected by chance), where
    that is positive and the pair was met more than once. Vectors have about unit length, as random
    ones; those of items without pairs stay as they are.

    Paper: Levy and Goldberg 2014 (positive pointwise mutual information); the exponent, and the
        symmetric split of the singular values, Levy, Goldberg and Dagan 2015.
    """
    matrix = _compare_with_chance(pairs)
    rank = min(vectors.shape[1], len(vectors) - 1)
    left, singular, _ = randomized_svd(matrix, rank, random_state=seed)
    paired = np.flatnonzero(matrix.sum(axis=1))
    factors = left[paired] * np.sqrt(singular)
    units = factors / np.linalg.norm(factors, axis=1, keepdims=True).clip(1e-9)
    known = torch.from_numpy(paired).to(vectors.device)
    started = _NOISE * vectors[known]
    started[:, :rank] += 0.9 * torch.from_numpy(units).to(vectors)
    vectors[known] = started


@torch.no_grad()
def fold_in_item_vectors(
    vectors: Float[Tensor, "rows dim"], pairs: PairCounts, is_new: NDArray[np.bool_]
) -> None:
    """Replace the vectors of new items by means of those of the items they are paired with.

    A mean is weighted as in `initialise_item_vectors`, and as long as its items are on average. New
    items without pairs stay as they are.

    Args:
        is_new: per catalog row, padding included.
    """
    weights = _compare_with_chance(pairs)[is_new][:, ~is_new]
    totals = weights.sum(axis=1)
    found = np.flatnonzero(totals)
    shares = weights[found] / totals[found, None]
    known = vectors[torch.from_numpy(~is_new).to(vectors.device)].cpu().numpy()
    means = shares @ known
    lengths = shares @ np.linalg.norm(known, axis=1)
    means *= (lengths / np.linalg.norm(means, axis=1).clip(1e-9))[:, None]
    rows = torch.from_numpy(np.flatnonzero(is_new)[found]).to(vectors.device)
    vectors[rows] = torch.from_numpy(means).to(vectors)


def _compare_with_chance(pairs: PairCounts) -> csr_array:
    """Compute the positive pointwise mutual information of items, in either order."""
    shape = (pairs.rows, pairs.rows)
    weights = (pairs.weights[0] - _DISCOUNT).clip(min=0.0)
    directed = csr_array((weights, (pairs.items, pairs.followers)), shape=shape)
    directed.eliminate_zeros()
    matrix = (directed + directed.T).tocoo()
    of_item = matrix.sum(axis=1)
    smoothed = of_item**_SMOOTHING
    share = smoothed / max(smoothed.sum(), np.finfo(np.float64).tiny)
    above = np.log(matrix.data / (of_item[matrix.row] * share[matrix.col]))
    kept = above > 0
    return csr_array((above[kept], (matrix.row[kept], matrix.col[kept])), shape=shape)
