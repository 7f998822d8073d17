"""The scores of given rows of the catalog."""

import numpy as np
import torch

from model.batch import SequenceBatch
from model.catalog import PADDING_ROW
from model.inference.selection import Rows, Scores
from model.inference.steps import Steps
from model.interfaces import CandidateScorer, EncoderOutput
from model.recommender import Recommender, add_repeat_scores

_PAIRS = 16_384
"""Pairs of a row and an event that a `CandidateScorer` scores in one step."""


def score_rows(recommender: Recommender, batch: SequenceBatch, rows: Rows) -> Steps[Scores]:
    """Score the same rows for each history of a batch, in steps: histories x rows.

    They equal the scores that `rank_rows` gives these rows.
    """
    if not isinstance(recommender.encoder, CandidateScorer):
        return _score_by_user_vector(recommender, batch, rows)
    size = max(_PAIRS // batch.rows.numel(), 1)
    parts: list[Scores] = []
    for begin in range(0, len(rows), size):
        candidates = torch.from_numpy(rows[begin : begin + size]).expand(len(batch.rows), -1)
        last = torch.arange(len(batch.rows)) * batch.rows.shape[1] + batch.lengths - 1
        with torch.inference_mode():
            parts.append(recommender.score_candidates(batch, last, candidates).scores.numpy())
        yield
    return np.concatenate(parts, axis=1)


@torch.inference_mode()
def _score_by_user_vector(recommender: Recommender, batch: SequenceBatch, rows: Rows) -> Scores:
    encoded: EncoderOutput = recommender(batch)
    scores = recommender.score_rows(encoded, torch.from_numpy(rows))
    if encoded.repeat_scores is not None:
        event_rows = batch.rows if encoded.repeat_rows is None else encoded.repeat_rows
        column_of = torch.zeros(len(recommender.items.weight), dtype=torch.int64)
        column_of[torch.from_numpy(rows)] = torch.arange(1, len(rows) + 1)
        columns = column_of[event_rows]
        repeats = encoded.repeat_scores.masked_fill(columns == PADDING_ROW, float("-inf"))
        padded = torch.cat((scores.new_full((len(scores), 1), float("-inf")), scores), dim=1)
        scores = add_repeat_scores(padded, repeats, columns)[:, 1:]
    every: Scores = scores.numpy()
    return every
