"""Scores that single events add to items: those of encoders that model repetition apart."""

from typing import NamedTuple

import numpy as np

from model.batch import SequenceBatch
from model.bundle.index import ItemIndex
from model.catalog import PADDING_ROW
from model.inference.selection import Rows, Scores, Selection
from model.interfaces import EncoderOutput


class RepeatScores(NamedTuple):
    """What one history adds to the scores of some items.

    Attributes:
        rows: distinct catalogue rows.
        log_mass: what is added to each, in log space.
    """

    rows: Rows
    log_mass: Scores


def repeat_scores(batch: SequenceBatch, encoded: EncoderOutput) -> list[RepeatScores] | None:
    """Sum the masses of events by item, for each history; None where the encoder gives none."""
    if encoded.repeat_scores is None:
        return None
    pointed = batch.rows if encoded.repeat_rows is None else encoded.repeat_rows
    pointed = pointed.expand(len(encoded.repeat_scores), -1)
    return [
        _sum_by_row(rows, log_mass)
        for rows, log_mass in zip(pointed.numpy(), encoded.repeat_scores.numpy(), strict=True)
    ]


def _sum_by_row(pointed: Rows, log_mass: Scores) -> RepeatScores:
    counts = (pointed != PADDING_ROW) & (log_mass > -np.inf)
    rows, item_of = np.unique(pointed[counts], return_inverse=True)
    if not len(rows):
        return RepeatScores(rows, log_mass[:0])
    peak = log_mass[counts].max()
    shares = np.exp(log_mass[counts].astype(np.float64) - peak)
    return RepeatScores(rows, (np.log(np.bincount(item_of, shares)) + peak).astype(np.float32))


def add_repeat_scores(
    rows: Rows,
    scores: Scores,
    repeats: RepeatScores,
    *,
    index: ItemIndex,
    user: Scores,
    selection: Selection,
) -> tuple[Rows, Scores]:
    """Add the permitted rows of `repeats` to the best rows of an index, with their mass.

    Mass only ever increases a score, so the best of this union are the best of the catalogue.
    """
    permitted = selection.permits(repeats.rows)
    repeated, log_mass = repeats.rows[permitted], repeats.log_mass[permitted]
    if not len(repeated):
        return rows, scores
    increased = np.logaddexp(index.score(user, repeated), log_mass)
    others = ~np.isin(rows, repeated)
    return np.append(rows[others], repeated), np.append(scores[others], increased)
