"""Answers less alike: maximal marginal relevance on the item vectors."""

import numpy as np
from numpy.typing import NDArray


def diversify(
    scores: NDArray[np.float32], vectors: NDArray[np.float32], n: int, diversity: float
) -> NDArray[np.int64]:
    """Places of `n` candidates, each the best of those left once likeness is held against it.

    Greedy maximal marginal relevance (Carbonell and Goldstein 1998, section 2): the next candidate
    maximises `(1 - diversity) relevance - diversity likeness`, where relevance is the score scaled
    to 0..1 over the candidates, and likeness the largest cosine with one chosen before.

    Args:
        scores: of the candidates, best first.
        vectors: of the candidates, one row each.
        n: how many to choose; fewer come back where there are fewer candidates.
        diversity: 0 keeps the order of the scores, 1 looks at likeness alone.
    """
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    directions = vectors / np.maximum(lengths, np.finfo(np.float32).tiny)
    spread = float(scores.max() - scores.min())
    relevance = (scores - scores.min()) / spread if spread > 0 else np.ones_like(scores)
    likeness = np.full(len(scores), -1.0, dtype=np.float32)
    is_left = np.ones(len(scores), dtype=np.bool_)
    chosen: list[int] = []
    while len(chosen) < min(n, len(scores)):
        # Nothing is like anything yet: the first is simply the best.
        held_against = diversity * likeness if chosen else 0.0
        worth = np.where(is_left, (1 - diversity) * relevance - held_against, -np.inf)
        best = 0 if not chosen else int(worth.argmax())
        chosen.append(best)
        is_left[best] = False
        likeness = np.maximum(likeness, directions @ directions[best])
    return np.array(chosen, dtype=np.int64)
