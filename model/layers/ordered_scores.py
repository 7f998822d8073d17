"""Scores that are summed in double precision, as repeat scores in the same order."""

import math
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor

from model.layers.item_counts import compute_popularity_bias
from model.layers.sparse_matrix import SparseRows

_LEAST = -60.0
"""Logarithm of a score, at least: single precision holds its exponential."""
_GAP = 1e-5
"""Between the logarithms of different scores, at least: more than single precision rounds."""
_DECIMALS = 10
"""Of the logarithms that are compared: sums of the same terms in another order are equal."""


class OrderedScores(NamedTuple):
    """Repeat scores, the best of each history first; those of row 0 are -inf.

    Attributes:
        log_scores: see `order_scores`.
        rows: the catalog rows that they belong to.
    """

    log_scores: Float[Tensor, "batch repeats"]
    rows: Int64[Tensor, "batch repeats"]


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
        popularity: of each row, larger is better among equal scores.
    """
    scores.eliminate_zeros()
    counts = np.diff(scores.indptr)
    histories = np.repeat(np.arange(len(counts)), counts)
    rows, logs = scores.indices.astype(np.int64), np.log(scores.data).round(_DECIMALS)
    counted = popularity.cpu().numpy()[rows]
    # Within a history from the worst to the best, and of equal ones from the last row to the first.
    order = np.lexsort((-rows, counted, logs, histories))
    rows, logs, counted = rows[order], logs[order], counted[order]
    places = np.arange(len(rows)) - np.repeat(scores.indptr[:-1], counts)
    shape = (len(counts), max(int(counts.max(initial=0)), 1))
    steps, spaced = np.zeros(shape), np.full(shape, -np.inf)
    spaced[histories, places] = logs.clip(min=_LEAST)
    steps[histories[1:], places[1:]] = (logs[1:] != logs[:-1]) | (counted[1:] != counted[:-1])
    gaps = _GAP * (steps.cumsum(axis=1) - steps[:, :1])
    spaced = np.maximum.accumulate(spaced - gaps, axis=1) + gaps
    log_scores = np.full(shape, -np.inf, dtype=np.float32)
    ordered_rows = np.zeros(shape, dtype=np.int64)
    best_first = (histories, counts[histories] - 1 - places)
    log_scores[best_first], ordered_rows[best_first] = spaced[histories, places], rows
    return OrderedScores(torch.from_numpy(log_scores), torch.from_numpy(ordered_rows))
