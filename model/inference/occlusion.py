"""Occlusion: leave single events out of a history and measure how a score changes.

A test of attention weights: they are faithful where events with more weight change the score more.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from model.batch import KnownHistory
from model.bundle.bundle import Bundle
from model.history import Query
from model.inference.answers import Occlusion
from model.inference.query import collate_at
from model.inference.scoring import score_rows
from model.inference.selection import Scores
from model.inference.steps import Steps

OCCLUDED_EVENTS = 20
"""The most events that are left out in turn: those with the most attention."""

_FEWEST_EVENTS = 3
_STEP_EVENTS = 1_024
"""Events of the histories that are scored side by side, in one step; at least one history is."""


def measure_occlusion(
    bundle: Bundle, query: Query, history: KnownHistory, weights: NDArray[np.float32], row: int
) -> Steps[Occlusion]:
    """Score a row without each of the most attended events in turn, in steps.

    Args:
        weights: attention, one per event of `history`.
    """
    changes: list[float | None] = [None] * len(history.events)
    correlation = None
    if len(history.events) > 1:
        indices = find_most_attended(weights)
        histories = [history, *(leave_out(history, int(index)) for index in indices)]
        scores = yield from _score_histories(bundle, query, histories, row)
        decreases = scores[0] - scores[1:]
        for index, decrease in zip(indices.tolist(), decreases.tolist(), strict=True):
            changes[index] = decrease
        correlation = measure_faithfulness(weights[indices], decreases)
    return Occlusion(bundle.catalog.item_id(row), tuple(changes), correlation)


def _score_histories(
    bundle: Bundle, query: Query, histories: Sequence[KnownHistory], row: int
) -> Steps[Scores]:
    """Score a row for each history."""
    size = max(_STEP_EVENTS // len(histories[0].events), 1)
    scores: list[Scores] = []
    for begin in range(0, len(histories), size):
        batch = collate_at(query, histories[begin : begin + size])
        scored = yield from score_rows(bundle.recommender, batch, np.array([row]))
        scores.append(scored[:, 0])
        yield
    return np.concatenate(scores)


def find_most_attended(weights: NDArray[np.float32], n: int = OCCLUDED_EVENTS) -> NDArray[np.int64]:
    """Find the indices of the `n` events with the most attention, in the order of the history."""
    most = np.argsort(-weights, kind="stable")[:n]
    return np.sort(most)


def leave_out(history: KnownHistory, index: int) -> KnownHistory:
    """Remove the event at `index` from a history."""
    return history._replace(
        events=history.events[:index] + history.events[index + 1 :],
        rows=np.delete(history.rows, index),
        actions=np.delete(history.actions, index),
    )


def measure_faithfulness(
    weights: NDArray[np.float32], changes: NDArray[np.float32]
) -> float | None:
    """Compute Spearman's rank correlation of attention weights with changes of the score.

    1 where events with more attention change the score more. None for fewer than three events, or
    where all weights or all changes are equal: the correlation is then undefined.
    """
    if len(weights) < _FEWEST_EVENTS or np.ptp(weights) == 0 or np.ptp(changes) == 0:
        return None
    return float(np.corrcoef(_rank(weights), _rank(changes))[0, 1])


def _rank(values: NDArray[np.float32]) -> NDArray[np.float64]:
    """Rank values in ascending order; equal ones share the mean of their ranks."""
    _, indices, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: NDArray[np.float64] = (np.cumsum(counts) - (counts - 1) / 2)[indices]
    return ranks
