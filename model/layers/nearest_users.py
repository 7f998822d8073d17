"""The nearest of many users, for each of some histories."""

import hashlib
from collections.abc import Callable

import numpy as np
import torch
from jaxtyping import Bool, Float64, Int64
from torch import Tensor

from model.layers.sparse_matrix import SparseRows

MOST_PAIRS = 4_000_000
"""Pairs of a history and a user that are compared at once: 32 MB of doubles."""


def order_users(
    rows: Int64[Tensor, " events"],
    times: Int64[Tensor, " events"],
    users: Int64[Tensor, " events"],
) -> tuple[
    Int64[Tensor, " events"],
    Int64[Tensor, " events"],
    Int64[Tensor, " events"],
]:
    """Give users new numbers, in the order of a digest of their events; return all three.

    What is stored does not tell who was first in a file, then, nor does the file decide which of
    equally near users are chosen.

    Args:
        rows: of events sorted by user, then time, as those that are returned.
        times: epoch microseconds.
        users: user number of each event.
    """
    items, instants, owners = (one.cpu().numpy() for one in (rows, times, users))
    order = np.lexsort((items, instants, owners))  # Events of one instant are in no order.
    events = np.stack((instants, items), axis=1)[order]
    begins = np.flatnonzero(np.append(True, owners[1:] != owners[:-1]))[: len(owners)]
    ends = np.append(begins, len(owners))[1:]
    digests = [
        hashlib.blake2b(events[begin:end].tobytes(), digest_size=16).digest()
        for begin, end in zip(begins, ends, strict=True)
    ]
    numbers = np.empty(len(begins), dtype=np.int64)
    numbers[sorted(range(len(begins)), key=digests.__getitem__)] = np.arange(len(begins))
    numbers = numbers.repeat(ends - begins)
    chosen = numbers.argsort(kind="stable")
    place = torch.from_numpy(order[chosen]).to(rows.device)
    return rows[place], times[place], torch.from_numpy(numbers[chosen]).to(users)


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
