"""The nearest of many users, for each of some histories."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Float64

from model.layers.sparse_matrix import SparseRows

MOST_PAIRS = 4_000_000
"""Pairs of a history and a user that are compared at once: 32 MB of doubles."""


def compute_in_slices(
    compute: Callable[[SparseRows], SparseRows],
    histories: SparseRows,
    *,
    users: int,
    most_pairs: int = MOST_PAIRS,
) -> SparseRows:
    """Compute the rows of a matrix from those of some histories, a slice of them at a time.

    Args:
        compute: the rows of some of the histories; it compares each with all users.
        histories: one row each, and at least one.
        users: number of users.
        most_pairs: of a history and a user, per slice of more than one history.
    """
    from scipy.sparse import vstack  # noqa: PLC0415 - a start needs no SciPy

    size = max(most_pairs // max(users, 1), 1)
    if histories.shape[0] <= size:
        return compute(histories)
    slices = [
        compute(histories[begin : begin + size]) for begin in range(0, histories.shape[0], size)
    ]
    return vstack(slices, format="csr")


def select_largest(
    values: Float64[np.ndarray, "histories users"], count: int
) -> Bool[np.ndarray, "histories users"]:
    """Select the `count` largest values of each row; of equal ones, those of the first users."""
    if count >= values.shape[1]:
        return np.ones_like(values, dtype=np.bool_)
    if not count:
        return np.zeros_like(values, dtype=np.bool_)
    smallest = np.partition(values, -count, axis=1)[:, -count, None]
    is_larger, is_equal = values > smallest, values == smallest
    left = count - is_larger.sum(1, keepdims=True)
    chosen: Bool[np.ndarray, "histories users"] = is_larger | (
        is_equal & (is_equal.cumsum(1) <= left)
    )
    return chosen
