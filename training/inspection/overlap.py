"""How alike the choices of two groups of events are, corrected for sampling noise."""

import numpy as np
from jaxtyping import Bool, Float, Int64
from numpy.typing import NDArray
from scipy import sparse

Pairs = Float[np.ndarray, "groups groups"]


def compute_collisions(
    groups: Int64[np.ndarray, " events"],
    rows: Int64[np.ndarray, " events"],
    users: Int64[np.ndarray, " events"],
    count: int,
) -> tuple[Pairs, Pairs]:
    """Count the pairs of events of different users, and those of them that share their item.

    Pairs of one user are left out: they share items because the user returns to them, not because
    their groups are alike.

    Args:
        groups: the group of each event, from 0 to `count - 1`.
        rows: the item of each event, a whole number.
        users: the user of each event, a whole number.
        count: the number of groups.

    Returns:
        For every two groups (one event of each, or two of the same group), the number of pairs of
        the same item, and the number of pairs.
    """
    own = users * (rows.max() + 1) + rows
    same_item = _count_pairs(groups, rows, count) - _count_pairs(groups, own, count)
    everybody = np.bincount(groups, minlength=count).astype(np.float64)
    return same_item, np.outer(everybody, everybody) - _count_pairs(groups, users, count)


def compute_overlap(
    same_item: Pairs, pairs: Pairs, chosen: Bool[np.ndarray, "groups groups"]
) -> float | None:
    """Compute the Morisita overlap of the groups of the chosen pairs, weighted by their events.

    It is the probability that two events of two groups share their item, over the mean of that
    probability within each group: 1 if items are chosen alike, 0 if no item is in both. As both
    probabilities are estimated from different events, sampling noise does not lower it.

    Returns:
        The overlap, or None if there are not enough pairs to estimate it.
    """
    shares = np.divide(same_item, pairs, out=np.full_like(pairs, np.nan), where=pairs > 0)
    within = (np.diag(shares)[:, None] + np.diag(shares)[None, :]) / 2
    chosen = chosen & np.isfinite(shares + within)
    weights = np.sqrt(pairs[chosen])
    total = float(weights @ within[chosen])
    return float(weights @ shares[chosen]) / total if total > 0 else None


def _count_pairs(groups: NDArray[np.int64], values: NDArray[np.int64], count: int) -> Pairs:
    """Count, for every two groups, the ordered pairs of events that share their value."""
    _, columns = np.unique(values, return_inverse=True)
    table = sparse.csr_array((np.ones(len(groups)), (groups, columns)), (count, columns.max() + 1))
    table.sum_duplicates()
    counted: Pairs = (table @ table.T).toarray()
    return counted
