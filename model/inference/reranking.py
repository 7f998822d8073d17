"""Reranking the candidates of an index, for encoders whose user vector depends on the candidate."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from model.batch import SequenceBatch
from model.inference.selection import Rows, Scores
from model.inference.steps import Steps
from model.recommender import Recommender

CANDIDATES = 1_000
"""Rows that the index retrieves for a model that scores each candidate by itself."""


_PAIRS = 16_384
"""Pairs of a candidate and an event that are scored in one step."""


class Reranked(NamedTuple):
    """Candidates as a `CandidateScorer` scores them.

    Attributes:
        best_row: the candidate with the highest score.
        attention: 1 x len, over the history for `best_row`; None where the model has none.
    """

    scores: Scores
    best_row: int
    attention: Tensor | None


def rerank(
    recommender: Recommender, batch: SequenceBatch, sample: int, rows: Rows
) -> Steps[Reranked]:
    """Score the candidates of the history at index `sample` of a batch, each by itself, in steps.

    Args:
        rows: the candidates, at least one.
    """
    last = sample * batch.rows.shape[1] + batch.lengths[sample : sample + 1] - 1
    size = max(_PAIRS // batch.rows.shape[1], 1)
    best_row, best_score, attention = 0, -np.inf, None
    scores: list[Scores] = []
    for begin in range(0, len(rows), size):
        candidates = rows[begin : begin + size]
        with torch.inference_mode():
            scored = recommender.score_candidates(batch, last, torch.from_numpy(candidates)[None])
        scores.append(scored.scores[0].numpy())
        best = int(scores[-1].argmax())
        if scores[-1][best] > best_score or begin == 0:
            best_row, best_score = int(candidates[best]), float(scores[-1][best])
            attention = None if scored.attention is None else scored.attention[0, [best]]
        yield
    return Reranked(np.concatenate(scores), best_row, attention)
