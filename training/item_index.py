"""The index of a bundle: it scores all items, or the candidates of an inverted file."""

import time

import numpy as np
from numpy.typing import NDArray

from model.bundle.index import ItemIndex
from training.config import IndexConfig
from training.evaluation.latency import limit_to_one_thread

USERS = 1_000
"""User vectors that an index is chosen with: half to transform the items, half to measure."""
TOP = 100
"""Results of a measured search."""


def choose_index(exact: ItemIndex, users: NDArray[np.float32], config: IndexConfig) -> ItemIndex:
    """Give the index of a large catalog an inverted file, if its searches are then faster.

    A search reads the fewest lists, of powers of two, that find enough of the best items.

    Args:
        exact: the index of a large catalog, without an inverted file.
        users: user vectors of the model, in random order.
    """
    if len(users) < 2:
        return exact
    own, measured = np.array_split(users, 2)
    indexed = exact.with_inverted_file(own)
    assert indexed.inverted is not None
    with limit_to_one_thread():
        seconds, best = _search(exact, measured)
        for power in range(indexed.inverted.lists.bit_length()):
            indexed = indexed.with_probes(2**power)
            if not indexed.finds_candidates(TOP):
                continue
            took, found = _search(indexed, measured)
            if took >= seconds:
                break
            if measure_overlap(found, best) >= config.recall:
                return indexed
    return exact


def measure_overlap(found: list[NDArray[np.int64]], best: list[NDArray[np.int64]]) -> float:
    """Compute the mean share of the best rows of several searches that were found."""
    return float(
        np.mean([np.isin(of_one, rows).mean() for rows, of_one in zip(found, best, strict=True)])
    )


def _search(index: ItemIndex, users: NDArray[np.float32]) -> tuple[float, list[NDArray[np.int64]]]:
    """Search for every user vector; return the median duration in seconds, and the rows found."""
    seconds, found = [], []
    for user in users:
        began = time.perf_counter()
        rows, _ = index.search(user, TOP)
        seconds.append(time.perf_counter() - began)
        found.append(rows)
    return float(np.median(seconds)), found
