"""Repeat scores: what an encoder adds, in log space, to the scores of single items."""

from typing import NamedTuple

import numpy as np

from model.batch import SequenceBatch
from model.bundle.index import are_among
from model.catalog import PADDING_ROW
from model.inference.retrieval import Retriever
from model.inference.selection import Rows, Scores, Selection
from model.interfaces import EncoderOutput


class RepeatScores(NamedTuple):
    """The repeat scores of one history.

    Attributes:
        rows: distinct catalog rows.
        scores: of the rows, to be added in log space.
    """

    rows: Rows
    scores: Scores


def sum_repeat_scores(
    batch: SequenceBatch, encoded: EncoderOutput, user_index: int
) -> RepeatScores | None:
    """Sum the repeat scores of one history's events by item; None where the encoder has none.

    Args:
        batch: the histories, one per user vector; or a single one, encoded at several instants.
        user_index: of the history's user vector in `encoded`.

    Raises:
        FloatingPointError: if a repeat score is NaN or infinite.
    """
    if encoded.repeat_scores is None:
        return None
    every_row = batch.rows if encoded.repeat_rows is None else encoded.repeat_rows
    event_rows = every_row[user_index if len(every_row) > 1 else 0].numpy()
    event_scores = encoded.repeat_scores[user_index].numpy()
    counts = (event_rows != PADDING_ROW) & (event_scores != -np.inf)
    rows, item_of = np.unique(event_rows[counts], return_inverse=True)
    if not len(rows):
        return RepeatScores(rows, event_scores[:0])
    peak = event_scores[counts].max()
    if not np.isfinite(peak):  # NaN, if any of the scores is.
        raise FloatingPointError(
            f"repeat scores must be finite or -inf, but one is {peak}; train the model again"
        )
    shares = np.exp(event_scores[counts].astype(np.float64) - peak)
    with np.errstate(divide="ignore"):  # A share too small for a double adds nothing.
        sums = np.log(np.bincount(item_of, shares))
    return RepeatScores(rows, (sums + peak).astype(np.float32))


def merge_repeat_scores(
    rows: Rows,
    scores: Scores,
    repeats: RepeatScores,
    retriever: Retriever,
    selection: Selection,
) -> tuple[Rows, Scores]:
    """Merge the permitted rows of `repeats` into the best rows of a retriever.

    Repeat scores only ever increase a score, so the best rows of the union are the best rows of
    the catalog.
    """
    permitted = selection.permits(repeats.rows)
    repeated, added = repeats.rows[permitted], repeats.scores[permitted]
    if not len(repeated):
        return rows, scores
    increased = np.logaddexp(retriever.score(repeated), added)
    others = ~are_among(rows, repeated)
    return np.append(rows[others], repeated), np.append(scores[others], increased)
