"""How many events of one user count: a crawler must not decide what is popular.

Of one user and UTC day, 5,000 events count, and 100 of one item; later ones of that day count
nowhere: neither as popularity and followers, nor as histories and targets to learn from. People
stay far below: of the demo's users, the busiest has 543 events on a day, and 22 of one item.
"""

import numpy as np
from numpy.typing import NDArray

from model.clock import MICROSECONDS_PER_DAY

MOST_PER_DAY = 5_000
"""Events of one user on one UTC day that count."""

MOST_OF_ITEM_PER_DAY = 100
"""Events of one user with one item on one UTC day that count."""


def find_excess(
    users: NDArray[np.int64], items: NDArray[np.int64], times: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Find the events beyond the limits; of one day, those that come first in the arrays count.

    Args:
        users: a number per user.
        items: a number per item.
        times: epoch microseconds.
    """
    days = times // MICROSECONDS_PER_DAY
    return (_count_earlier(users, days) >= MOST_PER_DAY) | (
        _count_earlier(users, days, items) >= MOST_OF_ITEM_PER_DAY
    )


def _count_earlier(*keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """Count, for each position, the earlier positions with the same keys."""
    order = np.lexsort(keys)  # stable
    begins = np.zeros(len(order), dtype=np.bool_)
    begins[:1] = True
    for key in keys:
        begins[1:] |= np.diff(key[order]) != 0
    positions = np.arange(len(order))
    counts = np.empty(len(order), dtype=np.int64)
    counts[order] = positions - np.maximum.accumulate(np.where(begins, positions, 0))
    return counts
