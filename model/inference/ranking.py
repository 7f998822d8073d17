"""The best rows for a history: found by the index, raised by masses, or decided by a judge."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from model.batch import SequenceBatch
from model.bundle.index import ItemIndex
from model.catalog import PADDING_ROW
from model.inference.diversity import diversify
from model.inference.stages import Stages, untimed
from model.interfaces import CandidateScorer, Encoded
from model.recommender import Recommender, with_repeats

PROPOSED = 1_000
"""Candidates the index proposes to a model that must look at each of them."""

_POOL = 5
"""Candidates per wanted item that a diverse answer chooses from."""

Rows = NDArray[np.int64]
Scores = NDArray[np.float32]
Mask = NDArray[np.bool_]


class Selection(NamedTuple):
    """Which rows one history is to be answered.

    Attributes:
        n: how many.
        allowed: per catalogue row whether it may be answered (row 0 never is); None: any.
        excluded: rows never to be answered.
        diversity: 0 for the best by score, towards 1 for ever less alike.
    """

    n: int
    allowed: Mask | None = None
    excluded: Collection[int] = ()
    diversity: float = 0.0


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
    wanted: Sequence[Selection],
    *,
    stages: Stages = untimed,
) -> list[Ranking]:
    """The best rows for each history of a batch."""
    with stages("encode"):
        encoded: Encoded = recommender(batch)
    return rank_encoded(recommender, index, batch, encoded, wanted, stages=stages)


@torch.inference_mode()
def rank_encoded(
    recommender: Recommender,
    index: ItemIndex,
    batch: SequenceBatch,
    encoded: Encoded,
    wanted: Sequence[Selection],
    *,
    stages: Stages = untimed,
) -> list[Ranking]:
    """The same for histories that are encoded already; of a single history at several instants."""
    users = recommender.index_queries(encoded.user).numpy()
    masses = _masses(batch, encoded)
    judges = isinstance(recommender.encoder, CandidateScorer)
    rankings = []
    for number, (user, within) in enumerate(zip(users, wanted, strict=True)):
        pool = max(_POOL * within.n, 50) if within.diversity else within.n
        with stages("search"):
            found = _search(index, user, within, max(pool, PROPOSED) if judges else pool)
            if masses is not None:
                found = _raised(found, index, user, _of_allowed(masses[number], within))
        rows, scores = found
        attention = None if encoded.attention is None else encoded.attention[number]
        of_row = None
        if judges and len(rows):
            scores, of_row, attention = _judged(recommender, batch, number, rows)
        # Of equals the first in the catalogue, as FAISS has it.
        best = np.lexsort((rows, -scores))[:pool]
        rows, scores = rows[best], scores[best]
        if within.diversity and len(rows):
            vectors = recommender.items.weight[torch.from_numpy(rows)].numpy()
            chosen = diversify(scores, vectors, within.n, within.diversity)
            rows, scores = rows[chosen], scores[chosen]
        with stages("filter"):
            _require_allowed(rows, within)
        intensity = None if encoded.intensity is None else encoded.intensity[number]
        rankings.append(Ranking(rows, scores, attention, of_row, intensity))
    return rankings


@torch.inference_mode()
def score_rows(recommender: Recommender, batch: SequenceBatch, rows: Rows) -> Scores:
    """The scores of some catalogue rows, the same for each history of a batch: histories x rows.

    They are what `rank` gives those rows.
    """
    if isinstance(recommender.encoder, CandidateScorer):
        candidates = torch.from_numpy(rows).expand(len(batch.rows), -1)
        last = torch.arange(len(batch.rows)) * batch.rows.shape[1] + batch.lengths - 1
        judged: Scores = recommender.judge(batch, last, candidates).scores.numpy()
        return judged
    encoded: Encoded = recommender(batch)
    scores = encoded.user @ recommender.item_vectors()[torch.from_numpy(rows)].T
    if encoded.repeats is not None:
        pointed = batch.rows if encoded.pointed_rows is None else encoded.pointed_rows
        place_of = torch.zeros(len(recommender.items.weight), dtype=torch.int64)
        place_of[torch.from_numpy(rows)] = torch.arange(1, len(rows) + 1)
        places = place_of[pointed]
        mass = encoded.repeats.masked_fill(places == PADDING_ROW, float("-inf"))
        padded = torch.cat((scores.new_full((len(scores), 1), float("-inf")), scores), dim=1)
        scores = with_repeats(padded, mass, places)[:, 1:]
    found: Scores = scores.numpy()
    return found


def _search(index: ItemIndex, user: Scores, within: Selection, n: int) -> tuple[Rows, Scores]:
    return index.search(user, n, exclude=within.excluded, allowed=within.allowed)


def _judged(
    recommender: Recommender, batch: SequenceBatch, number: int, rows: Rows
) -> tuple[Scores, int, Tensor | None]:
    """What a judge makes of some rows: their scores, the best one, and its view of the history."""
    last = number * batch.rows.shape[1] + batch.lengths[number : number + 1] - 1
    judged = recommender.judge(batch, last, torch.from_numpy(rows)[None])
    scores: Scores = judged.scores[0].numpy()
    top = int(scores.argmax())
    return scores, int(rows[top]), None if judged.attention is None else judged.attention[0, [top]]


def _masses(batch: SequenceBatch, encoded: Encoded) -> list[tuple[Rows, Scores]] | None:
    """For each history the distinct rows pointed at, and the logarithm of the mass of each."""
    if encoded.repeats is None:
        return None
    pointed = batch.rows if encoded.pointed_rows is None else encoded.pointed_rows
    pointed = pointed.expand(len(encoded.repeats), -1)
    return [
        _summed(rows, log_mass)
        for rows, log_mass in zip(pointed.numpy(), encoded.repeats.numpy(), strict=True)
    ]


def _summed(pointed: Rows, log_mass: Scores) -> tuple[Rows, Scores]:
    counts = (pointed != PADDING_ROW) & (log_mass > -np.inf)
    rows, item_of = np.unique(pointed[counts], return_inverse=True)
    if not len(rows):
        return rows, log_mass[:0]
    peak = log_mass[counts].max()
    shares = np.exp(log_mass[counts].astype(np.float64) - peak)
    return rows, (np.log(np.bincount(item_of, shares)) + peak).astype(np.float32)


def _of_allowed(masses: tuple[Rows, Scores], within: Selection) -> tuple[Rows, Scores]:
    rows, log_mass = masses
    kept = ~np.isin(rows, _array(within.excluded))
    if within.allowed is not None:
        kept &= within.allowed[rows]
    return rows[kept], log_mass[kept]


def _raised(
    found: tuple[Rows, Scores], index: ItemIndex, user: Scores, masses: tuple[Rows, Scores]
) -> tuple[Rows, Scores]:
    """Rows found, joined by those with mass, their mass added.

    Mass only ever raises an item, so the best of this union are the best of the whole catalogue.
    """
    rows, log_mass = masses
    if not len(rows):
        return found
    raised = np.logaddexp(index.score(user, rows), log_mass)
    others = ~np.isin(found[0], rows)
    return np.append(found[0][others], rows), np.append(found[1][others], raised)


def _require_allowed(rows: Rows, within: Selection) -> None:
    """Look at every answered row once more: an index may ignore a filter without a word."""
    forbidden = np.isin(rows, _array(within.excluded)) | (rows == PADDING_ROW)
    if within.allowed is not None:
        forbidden |= ~within.allowed[rows]
    if forbidden.any():
        raise AssertionError(
            f"the index must answer only what the filter allows, but gave {forbidden.sum()} rows "
            "outside it; rebuild the index as a flat one"
        )


def _array(rows: Collection[int]) -> Rows:
    return np.fromiter(rows, dtype=np.int64, count=len(rows))
