"""Occlusion: leave events or baskets out of a history in turn and measure how a score changes.

A test of attention weights: they are faithful where events with more weight change the score more.
"""

import math
from collections.abc import Sequence
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from model.batch import KnownHistory
from model.bundle.bundle import Bundle
from model.history import Event, Query
from model.inference.answers import FaithfulnessNote, LeftOut, Occlusion, OcclusionUnit
from model.inference.query import collate_at
from model.inference.scoring import score_rows
from model.inference.selection import Scores
from model.inference.steps import Steps

MOST_LEFT_OUT = 20
"""The most events or baskets that are left out in turn: those with the most attention."""

_FEWEST_LEFT_OUT = 5
"""With fewer, chance alone gives any correlation in more than one case of twenty."""
_SIGNIFICANT = 1.96
"""Standard deviations of the correlation of independent ranks, which is 1 / sqrt(n - 1)."""
_HIGH = 0.7
_NOISE = 1e-5
"""Changes that differ by less, relative to the score, are rounding of 32-bit numbers."""

_STEP_EVENTS = 1_024
"""Events of the histories that are scored side by side, in one step; at least one history is."""


def measure_occlusion(
    bundle: Bundle,
    query: Query,
    history: KnownHistory,
    weights: NDArray[np.float32],
    row: int,
    unit: OcclusionUnit,
) -> Steps[Occlusion]:
    """Score a row without each of the most attended events or baskets in turn, in steps.

    Args:
        weights: attention, one per event of `history`.
    """
    item_id = bundle.catalog.item_id(row)
    units = divide_history(history.events, unit)
    if len(units) < 2:
        return Occlusion(item_id, unit, (), None, None, "too_few_left_out")
    of_units = np.array([weights[list(indices)].sum() for indices in units])
    chosen = find_most_attended(of_units)
    histories = [history, *(leave_out(history, units[one]) for one in chosen.tolist())]
    scores = yield from _score_histories(bundle, query, histories, row)
    decreases = (scores[0] - scores[1:]).astype(np.float64)
    mean = float(decreases.mean())
    left_out = tuple(
        LeftOut(units[one], weight, change)
        for one, weight, change in zip(
            chosen.tolist(), of_units[chosen].tolist(), (decreases - mean).tolist(), strict=True
        )
    )
    noise = _NOISE * max(1.0, float(np.abs(scores).max()))
    correlation, note = measure_faithfulness(of_units[chosen], decreases, noise=noise)
    return Occlusion(item_id, unit, left_out, mean, correlation, note)


def divide_history(events: Sequence[Event], unit: OcclusionUnit) -> list[tuple[int, ...]]:
    """Divide a history into what is left out together: the indices of each event or basket.

    Args:
        events: oldest first.
    """
    if unit == "event":
        return [(index,) for index in range(len(events))]
    baskets = groupby(range(len(events)), key=lambda index: events[index].at)
    return [tuple(indices) for _, indices in baskets]


def count_left_out(events: Sequence[Event], unit: OcclusionUnit, *, max_history: int) -> int:
    """Count the events or baskets that are left out in turn, if the model knows all items.

    Args:
        max_history: events that the model reads, at most.
    """
    units = len(divide_history(events[-max_history:], unit))
    return min(units, MOST_LEFT_OUT) if units > 1 else 0


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


def find_most_attended(weights: NDArray[np.float32], n: int = MOST_LEFT_OUT) -> NDArray[np.int64]:
    """Find the indices of the `n` largest weights, in the order of the history."""
    most = np.argsort(-weights, kind="stable")[:n]
    return np.sort(most)


def leave_out(history: KnownHistory, indices: Sequence[int]) -> KnownHistory:
    """Remove some events from a history."""
    removed = {*indices}
    return history._replace(
        events=tuple(one for index, one in enumerate(history.events) if index not in removed),
        rows=np.delete(history.rows, [*indices]),
        actions=np.delete(history.actions, [*indices]),
    )


def measure_faithfulness(
    weights: NDArray[np.floating], changes: NDArray[np.floating], *, noise: float = 0.0
) -> tuple[float | None, FaithfulnessNote]:
    """Compute Spearman's rank correlation of attention weights with changes of the score.

    1 where events with more attention change the score more. It is withheld where it says nothing:
    for fewer than five changes, where weights or changes are about equal, and where independent
    ranks would correlate as much in one of twenty cases.

    Args:
        noise: the largest range of changes that is rounding.

    Returns:
        The correlation or None, and what it says or why there is none.
    """
    if len(weights) < _FEWEST_LEFT_OUT:
        return None, "too_few_left_out"
    if np.ptp(weights) == 0:
        return None, "equal_weights"
    if np.ptp(changes) <= noise:
        return None, "changes_within_noise"
    correlation = float(np.corrcoef(_rank(weights), _rank(changes))[0, 1])
    if abs(correlation) * math.sqrt(len(weights) - 1) < _SIGNIFICANT:
        return None, "not_significant"
    if correlation < 0:
        return correlation, "reversed"
    return correlation, "high" if correlation >= _HIGH else "medium"


def _rank(values: NDArray[np.floating]) -> NDArray[np.float64]:
    """Rank values in ascending order; equal ones share the mean of their ranks."""
    _, indices, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: NDArray[np.float64] = (np.cumsum(counts) - (counts - 1) / 2)[indices]
    return ranks
