"""Does attention tell the truth? Leave events out, one at a time, and see what the score does."""

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

from model.batch import KnownHistory

OCCLUDED = 20
"""Events that are left out in turn: those with the most attention."""

_FEWEST = 3


def most_attended(weights: NDArray[np.float32], n: int = OCCLUDED) -> NDArray[np.int64]:
    """Places of the `n` events with the most attention, in the order of the history."""
    most = np.argsort(-weights, kind="stable")[:n]
    return np.sort(most)


def without(history: KnownHistory, place: int) -> KnownHistory:
    """The same history, but for the event at one place."""
    return history._replace(
        events=history.events[:place] + history.events[place + 1 :],
        rows=np.delete(history.rows, place),
        actions=np.delete(history.actions, place),
    )


def faithfulness(weights: NDArray[np.float32], changes: NDArray[np.float32]) -> float | None:
    """Spearman's rank correlation of attention with the score that each event is worth.

    1 where the more an event was attended to, the more the score owes it. None for fewer than three
    events, or where all weights or all changes are equal: there is no order to compare.
    """
    if len(weights) < _FEWEST or np.ptp(weights) == 0 or np.ptp(changes) == 0:
        return None
    return float(spearmanr(weights, changes).statistic)
