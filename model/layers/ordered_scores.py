"""Scores that are summed in double precision, as repeat scores in the same order."""

import math
from typing import NamedTuple, final

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from model.layers.item_counts import compute_popularity_bias
from model.layers.sparse_matrix import SparseRows

_LEAST = -60.0
"""Logarithm of a score, at least: single precision holds its exponential."""
_GAP = 4e-5
"""Between the logarithms of different scores, at least: more than single precision rounds."""
_STEPS = 1e10
"""Of a logarithm, per unit: sums of the same terms in another order have the same number."""
_LOWEST = -746
"""Below the logarithm of the smallest double."""
_RANK_BITS = 20
"""Of the ranks of popularity, which are as many as there are different counts of events."""


class OrderedScores(NamedTuple):
    """Repeat scores, the best of each history first; those of row 0 are -inf.

    Attributes:
        log_scores: see `order_scores`.
        rows: the catalog rows that they belong to.
    """

    log_scores: Float[Tensor, "batch repeats"]
    rows: Int64[Tensor, "batch repeats"]

    def to(self, other: Tensor) -> "OrderedScores":
        """Copy to the device of a tensor; the scores take its type, too."""
        return OrderedScores(self.log_scores.to(other), self.rows.to(other.device))


def rank_popularity(rows: Int64[Tensor, " events"], *, items: int) -> Int64[Tensor, " rows"]:
    """Rank the rows of a catalog by their events, from 0; equal counts have equal ranks."""
    counts = torch.bincount(rows, minlength=items + 1)
    ranks: Tensor = torch.unique(counts, return_inverse=True)[1]
    return ranks


def compute_rest_bias(rows: Int64[Tensor, " events"], *, items: int) -> Float[Tensor, " rows"]:
    """Compute an item bias by popularity that is below every score of `order_scores`."""
    return compute_popularity_bias(rows, items=items, at_most=math.exp(_LEAST - 15))


def order_scores(scores: SparseRows, popularity: Int64[Tensor, " rows"]) -> OrderedScores:
    """Convert positive scores to repeat scores that rank in the same order.

    A repeat score is the logarithm of a score, which single precision would round: different scores
    are therefore kept apart by at least a gap, and equal ones with different popularity, too.
    Scores of equal items with equal popularity stay equal. Each is at most the gap times the number
    of lower ones above its logarithm.

    Args:
        scores: batch x rows; zeros have no repeat score.
        popularity: `rank_popularity` of each row, which orders equal scores.
    """
    scores.eliminate_zeros()
    counts = np.diff(scores.indptr)[:, None]
    places = np.arange(max(int(counts.max(initial=0)), 1))
    is_score = places < counts
    keys = np.full(is_score.shape, np.iinfo(np.int64).max)
    rows = np.zeros(is_score.shape, dtype=np.int64)
    rows[is_score] = scores.indices
    steps = np.rint((np.log(scores.data) - _LOWEST) * _STEPS).astype(np.int64)
    keys[is_score] = (steps << _RANK_BITS) + popularity.cpu().numpy()[scores.indices]
    # From the worst to the best, what is no score at the end.
    order = keys.argsort(axis=1)
    keys, rows = (np.take_along_axis(one, order, axis=1) for one in (keys, rows))
    logs = ((keys >> _RANK_BITS) / _STEPS + _LOWEST).clip(min=_LEAST)
    gaps = _GAP * np.cumsum(np.diff(keys, axis=1, prepend=keys[:, :1]) != 0, axis=1)
    spaced = np.maximum.accumulate(logs - gaps, axis=1) + gaps
    from_best = np.maximum(counts - 1 - places, 0)
    log_scores = np.take_along_axis(spaced, from_best, axis=1).astype(np.float32)
    rows = np.take_along_axis(rows, from_best, axis=1)
    return OrderedScores(
        torch.from_numpy(np.where(is_score, log_scores, np.float32(-np.inf))),
        torch.from_numpy(np.where(is_score, rows, 0)),
    )


@final
class PopularityOrder(nn.Module):
    """Orders summed scores, equal ones by popularity, which also orders the items without one.

    Shape: scores (batch, rows) -> one repeat score per item with a positive score

    Args:
        items: catalog size without the padding row.
    """

    ranks: Tensor

    def __init__(self, *, items: int) -> None:
        super().__init__()
        self.catalog_size = items
        self.register_buffer("ranks", torch.zeros(items + 1, dtype=torch.int64))

    def fit_counts(self, rows: Int64[Tensor, " events"]) -> Float[Tensor, " rows"]:
        """Rank the items by their events; return the bias of those without a score."""
        self.ranks.copy_(rank_popularity(rows, items=self.catalog_size))
        return compute_rest_bias(rows, items=self.catalog_size)

    def forward(self, scores: SparseRows, like: Tensor) -> OrderedScores:
        """Order scores; the result has the device of another tensor, and its type."""
        return order_scores(scores, self.ranks).to(like)
