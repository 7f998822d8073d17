"""Reranking the candidates of an index, for encoders whose user vector depends on the candidate."""

from typing import NamedTuple

import torch
from torch import Tensor

from model.batch import SequenceBatch
from model.inference.selection import Rows, Scores
from model.recommender import Recommender

CANDIDATES = 1_000
"""Rows that the index retrieves for a model that scores each candidate by itself."""


class Reranked(NamedTuple):
    """Candidates as a `CandidateScorer` scores them.

    Attributes:
        best_row: the candidate with the highest score.
        attention: 1 x len, over the history for `best_row`; None where the model has none.
    """

    scores: Scores
    best_row: int
    attention: Tensor | None


def rerank(recommender: Recommender, batch: SequenceBatch, sample: int, rows: Rows) -> Reranked:
    """Score the candidates of the history at index `sample` of a batch, each by itself."""
    last = sample * batch.rows.shape[1] + batch.lengths[sample : sample + 1] - 1
    scored = recommender.score_candidates(batch, last, torch.from_numpy(rows)[None])
    scores: Scores = scored.scores[0].numpy()
    best = int(scores.argmax())
    attention = None if scored.attention is None else scored.attention[0, [best]]
    return Reranked(scores, int(rows[best]), attention)
