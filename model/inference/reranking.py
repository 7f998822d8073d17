"""Scores of given rows: those of an index's candidates, and of any items of the catalogue."""

from typing import NamedTuple

import torch
from torch import Tensor

from model.batch import SequenceBatch
from model.catalog import PADDING_ROW
from model.inference.selection import Rows, Scores
from model.interfaces import CandidateScorer, EncoderOutput
from model.recommender import Recommender, add_repeat_scores

CANDIDATES = 1_000
"""Rows that the index finds for a model that scores each candidate by itself."""


class Reranked(NamedTuple):
    """Candidates as a `CandidateScorer` scores them.

    Attributes:
        best_row: the candidate with the highest score.
        attention: 1 x len, over the history for `best_row`; None where the model has none.
    """

    scores: Scores
    best_row: int
    attention: Tensor | None


def rerank(recommender: Recommender, batch: SequenceBatch, place: int, rows: Rows) -> Reranked:
    """Score the candidates of one history of a batch, each by itself."""
    last = place * batch.rows.shape[1] + batch.lengths[place : place + 1] - 1
    judged = recommender.score_candidates(batch, last, torch.from_numpy(rows)[None])
    scores: Scores = judged.scores[0].numpy()
    best = int(scores.argmax())
    attention = None if judged.attention is None else judged.attention[0, [best]]
    return Reranked(scores, int(rows[best]), attention)


@torch.inference_mode()
def score_rows(recommender: Recommender, batch: SequenceBatch, rows: Rows) -> Scores:
    """The scores of the same rows for each history of a batch: histories x rows.

    They are the scores that `rank_rows` gives these rows.
    """
    if isinstance(recommender.encoder, CandidateScorer):
        candidates = torch.from_numpy(rows).expand(len(batch.rows), -1)
        last = torch.arange(len(batch.rows)) * batch.rows.shape[1] + batch.lengths - 1
        judged: Scores = recommender.score_candidates(batch, last, candidates).scores.numpy()
        return judged
    encoded: EncoderOutput = recommender(batch)
    scores = encoded.user @ recommender.item_vectors()[torch.from_numpy(rows)].T
    if encoded.repeat_scores is not None:
        pointed = batch.rows if encoded.repeat_rows is None else encoded.repeat_rows
        place_of = torch.zeros(len(recommender.items.weight), dtype=torch.int64)
        place_of[torch.from_numpy(rows)] = torch.arange(1, len(rows) + 1)
        places = place_of[pointed]
        mass = encoded.repeat_scores.masked_fill(places == PADDING_ROW, float("-inf"))
        padded = torch.cat((scores.new_full((len(scores), 1), float("-inf")), scores), dim=1)
        scores = add_repeat_scores(padded, mass, places)[:, 1:]
    found: Scores = scores.numpy()
    return found
