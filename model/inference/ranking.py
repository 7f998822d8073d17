"""The best rows of the catalog for an encoded history."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from model.batch import SequenceBatch
from model.bundle.index import ItemIndex
from model.inference.answers import ScorePart
from model.inference.diversity import diversify
from model.inference.repeats import merge_repeat_scores, sum_repeat_scores
from model.inference.reranking import CANDIDATES, rerank
from model.inference.retrieval import ExhaustiveRetriever, IndexRetriever, Retriever
from model.inference.score_parts import split_scores
from model.inference.selection import Rows, Scores, Selection, require_permitted
from model.inference.steps import Steps
from model.interfaces import EncoderOutput
from model.recommender import Recommender

DIVERSE_POOL = 5
"""Candidates per returned item that a diverse answer chooses from."""

Stage = Literal["encode", "search", "filter", "explain"]
"""The parts of a recommendation that are timed: running the model, searching the index, applying
the constraints, and computing explanations."""

Stages = Callable[[Stage], AbstractContextManager[None]]
"""Times a stage: entering the context starts it, leaving it ends it."""


@contextmanager
def skip_timing(_: Stage) -> Iterator[None]:
    """Time nothing."""
    yield


class Ranking(NamedTuple):
    """The best rows for one history, and what the model computed on the way.

    Attributes:
        rows: best first.
        scores: of the rows.
        attention: heads x len; None where the model does not attend.
        of_row: the row that the attention is for, where it differs from item to item.
        intensity: per group of items; None where the model has none.
        parts: of the scores, per row; None where they were not requested, or the model has no wide
            part.
    """

    rows: Rows
    scores: Scores
    attention: Tensor | None
    of_row: int | None
    intensity: Tensor | None
    parts: list[tuple[ScorePart, ...]] | None


def encode_histories(
    recommender: Recommender, batch: SequenceBatch, stages: Stages = skip_timing
) -> Steps[EncoderOutput]:
    """Encode the histories of a batch, in one step."""
    with stages("encode"), torch.inference_mode():
        encoded: EncoderOutput = recommender(batch)
    yield
    return encoded


def rank_rows(
    recommender: Recommender,
    index: ItemIndex,
    batch: SequenceBatch,
    selections: Sequence[Selection],
) -> Steps[list[Ranking]]:
    """Encode the histories of a batch, and find the best rows for each, in steps."""
    encoded = yield from encode_histories(recommender, batch)
    return (yield from rank_encoded(recommender, index, batch, encoded, selections))


def rank_encoded(
    recommender: Recommender,
    index: ItemIndex,
    batch: SequenceBatch,
    encoded: EncoderOutput,
    selections: Sequence[Selection],
    *,
    mean_vector: Tensor | None = None,
    stages: Stages = skip_timing,
) -> Steps[list[Ranking]]:
    """Find the best rows for each user vector of `encoded`, in steps.

    Args:
        batch: the histories, one per user vector; or a single one, encoded at several instants.
        selections: one per user vector.
        mean_vector: split the scores into parts, which are compared with this mean of
            `Recommender.static_vectors`; None to leave them whole.
    """
    rankings = []
    retrievers = _Retrievers(recommender, index, encoded)
    for user_index, selection in enumerate(selections):
        ranking = yield from _rank_user(
            recommender, retrievers, batch, encoded, user_index, selection, mean_vector, stages
        )
        rankings.append(ranking)
        yield
    return rankings


def _rank_user(
    recommender: Recommender,
    retrievers: "_Retrievers",
    batch: SequenceBatch,
    encoded: EncoderOutput,
    user_index: int,
    selection: Selection,
    mean_vector: Tensor | None,
    stages: Stages,
) -> Steps[Ranking]:
    """Find the best rows for one user vector of `encoded`."""
    reranks = recommender.scores_candidates
    pool = max(DIVERSE_POOL * selection.n, 50) if selection.diversity else selection.n
    attention = None if encoded.attention is None else encoded.attention[user_index]
    intensity = None if encoded.intensity is None else encoded.intensity[user_index]
    of_row = None
    with stages("search"):
        retriever = retrievers.choose(user_index)
        rows, scores = retriever.search(max(pool, CANDIDATES) if reranks else pool, selection)
        repeats = sum_repeat_scores(batch, encoded, user_index)
        if repeats is not None:
            rows, scores = merge_repeat_scores(rows, scores, repeats, retriever, selection)
    if reranks and len(rows):
        scores, of_row, attention = yield from rerank(recommender, batch, user_index, rows)
    # Equal scores keep the order of the catalog, as FAISS does.
    best = np.lexsort((rows, -scores))[:pool]
    rows, scores = rows[best], scores[best]
    if selection.diversity and len(rows):
        vectors = recommender.items.weight[torch.from_numpy(rows)].numpy()
        chosen = yield from diversify(scores, vectors, selection.n, selection.diversity)
        rows, scores = rows[chosen], scores[chosen]
    with stages("filter"):
        require_permitted(rows, selection)
    parts = None
    if mean_vector is not None:
        yield
        with stages("explain"), torch.inference_mode():
            parts = split_scores(
                recommender, mean_vector, encoded, user_index, torch.from_numpy(rows)
            )
    return Ranking(rows, scores, attention, of_row, intensity, parts)


class _Retrievers:
    """Chooses the index, if it holds the popularity at the query time of a user vector."""

    def __init__(self, recommender: Recommender, index: ItemIndex, encoded: EncoderOutput) -> None:
        self._recommender = recommender
        self._index = index
        self._users = encoded.user
        self._popularity = encoded.popularity
        self._snapshots = [] if encoded.popularity is None else encoded.popularity.entry_of.tolist()
        # For all users at once: one small operation of PyTorch costs more than its arithmetic.
        with torch.inference_mode():
            self._index_queries = recommender.index_queries(encoded.user).numpy()

    def choose(self, user_index: int) -> Retriever:
        """Choose the retriever for a user vector of the encoded ones."""
        if self._popularity is not None:
            snapshot = self._snapshots[user_index]
            if snapshot != self._popularity.latest:
                with torch.inference_mode():
                    scores = self._recommender.score_at(
                        self._users[user_index], self._popularity.table[snapshot]
                    )
                return ExhaustiveRetriever(scores.numpy())
        return IndexRetriever(self._index, self._index_queries[user_index])
