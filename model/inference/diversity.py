"""Maximal marginal relevance on the item vectors."""

import numpy as np
from numpy.typing import NDArray

from model.inference.steps import Steps

_CHOICES = 16
"""Candidates that are chosen in one step."""


def diversify(
    scores: NDArray[np.float32], vectors: NDArray[np.float32], n: int, diversity: float
) -> Steps[NDArray[np.int64]]:
    """Choose `n` candidates greedily by their score and by how little they resemble those chosen.

    In steps.

    Maximal marginal relevance (Carbonell and Goldstein 1998, section 2): the next candidate
    maximises `(1 - diversity) relevance - diversity similarity`, where relevance is the score
    scaled to 0..1 over the candidates, and similarity the largest cosine with a chosen one.

    Args:
        scores: of the candidates, best first.
        vectors: of the candidates, one row each.
        n: how many to choose; fewer are returned where there are fewer candidates.
        diversity: 0 keeps the order of the scores, 1 considers similarity alone.

    Returns:
        Indices into `scores`, in the order they were chosen.
    """
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    directions = vectors / np.maximum(lengths, np.finfo(np.float32).tiny)
    spread = float(scores.max() - scores.min())
    relevance = (scores - scores.min()) / spread if spread > 0 else np.ones_like(scores)
    similarity = np.full(len(scores), -1.0, dtype=np.float32)
    is_left = np.ones(len(scores), dtype=np.bool_)
    chosen: list[int] = []
    while len(chosen) < min(n, len(scores)):
        # Nothing is chosen yet, so the first candidate is the best by score.
        penalty = diversity * similarity if chosen else 0.0
        marginal = np.where(is_left, (1 - diversity) * relevance - penalty, -np.inf)
        best = 0 if not chosen else int(marginal.argmax())
        chosen.append(best)
        is_left[best] = False
        similarity = np.maximum(similarity, directions @ directions[best])
        if len(chosen) % _CHOICES == 0:
            yield
    return np.array(chosen, dtype=np.int64)
