"""The best rows for a history: found by the index, raised by masses, or decided by a judge."""

from collections.abc import Collection
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from model.batch import SequenceBatch
from model.bundle.index import ItemIndex
from model.catalog import PADDING_ROW
from model.interfaces import CandidateScorer, Encoded
from model.recommender import Recommender

PROPOSED = 1_000
"""Candidates the index proposes to a model that must look at each of them."""

Rows = NDArray[np.int64]
Scores = NDArray[np.float32]


class Ranking(NamedTuple):
    """Catalogue rows for one history, and what the model said on the way.

    Attributes:
        rows: best first.
        scores: of the rows.
        attention: heads x len, where the model attends.
        of_row: the row that the attention is about, where it differs from item to item.
        intensity: per group of items, where the model tells one.
    """

    rows: Rows
    scores: Scores
    attention: Tensor | None
    of_row: int | None
    intensity: Tensor | None


@torch.inference_mode()
def rank(
    recommender: Recommender,
    index: ItemIndex,
    batch: SequenceBatch,
    n: int,
    *,
    include: Rows | None,
    excluded: Collection[int],
) -> Ranking:
    """The `n` best rows for the one history of a batch.

    Args:
        include: if given, only these; none of them is excluded.
        excluded: never these.
    """
    encoded: Encoded = recommender(batch)
    user = recommender.index_queries(encoded.user)[0].numpy()
    judges = isinstance(recommender.encoder, CandidateScorer)
    if include is not None:
        rows, scores = include, index.score(user, include)
    else:
        rows, scores = index.search(user, max(n, PROPOSED) if judges else n, exclude=excluded)
    if encoded.repeats is not None:
        pointed = batch.rows if encoded.pointed_rows is None else encoded.pointed_rows
        mass_of = _masses(pointed[0].numpy(), encoded.repeats[0].numpy())
        is_allowed = np.isin(mass_of[0], rows if include is not None else _array(excluded))
        kept = is_allowed if include is not None else ~is_allowed
        rows, scores = _raised((rows, scores), index, user, mass_of[0][kept], mass_of[1][kept])
    attention, of_row = encoded.attention, None
    if judges and len(rows):
        judged = recommender.judge(batch, batch.lengths - 1, torch.from_numpy(rows)[None])
        scores = judged.scores[0].numpy()
        top = int(scores.argmax())
        of_row = int(rows[top])
        attention = None if judged.attention is None else judged.attention[:, [top]]
    best = np.lexsort((rows, -scores))[:n]  # of equals the first in the catalogue, as FAISS has it
    return Ranking(
        rows=rows[best],
        scores=scores[best],
        attention=None if attention is None else attention[0],
        of_row=of_row,
        intensity=None if encoded.intensity is None else encoded.intensity[0],
    )


def _masses(pointed: Rows, log_mass: Scores) -> tuple[Rows, Scores]:
    """Distinct rows that are pointed at, and the logarithm of the mass of each."""
    counts = (pointed != PADDING_ROW) & (log_mass > -np.inf)
    rows, item_of = np.unique(pointed[counts], return_inverse=True)
    if not len(rows):
        return rows, log_mass[:0]
    peak = log_mass[counts].max()
    shares = np.exp(log_mass[counts].astype(np.float64) - peak)
    return rows, (np.log(np.bincount(item_of, shares)) + peak).astype(np.float32)


def _raised(
    found: tuple[Rows, Scores],
    index: ItemIndex,
    user: NDArray[np.float32],
    rows: Rows,
    log_mass: Scores,
) -> tuple[Rows, Scores]:
    """Rows found, joined by those with mass, their mass added.

    Mass only ever raises an item, so the best of this union are the best of the whole catalogue.
    """
    if not len(rows):
        return found
    raised = np.logaddexp(index.score(user, rows), log_mass)
    others = ~np.isin(found[0], rows)
    return np.append(found[0][others], rows), np.append(found[1][others], raised)


def _array(rows: Collection[int]) -> Rows:
    return np.fromiter(rows, dtype=np.int64, count=len(rows))
