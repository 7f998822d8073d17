"""The scores of given rows of the catalog."""

import torch

from model.batch import SequenceBatch
from model.catalog import PADDING_ROW
from model.inference.selection import Rows, Scores
from model.interfaces import CandidateScorer, EncoderOutput
from model.recommender import Recommender, add_repeat_scores


@torch.inference_mode()
def score_rows(recommender: Recommender, batch: SequenceBatch, rows: Rows) -> Scores:
    """Score the same rows for each history of a batch: histories x rows.

    They equal the scores that `rank_rows` gives these rows.
    """
    if isinstance(recommender.encoder, CandidateScorer):
        candidates = torch.from_numpy(rows).expand(len(batch.rows), -1)
        last = torch.arange(len(batch.rows)) * batch.rows.shape[1] + batch.lengths - 1
        each: Scores = recommender.score_candidates(batch, last, candidates).scores.numpy()
        return each
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
