"""The catalog rows that an answer may hold."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from model.bundle.index import are_among
from model.catalog import PADDING_ROW, Catalog
from model.history import Event
from model.inference.answers import Constraints

Rows = NDArray[np.int64]
Scores = NDArray[np.float32]
Mask = NDArray[np.bool_]

NO_ROWS: Rows = np.empty(0, dtype=np.int64)


class Selection(NamedTuple):
    """Which rows may answer one query, and how many.

    Attributes:
        n: the most rows.
        allowed: per catalog row whether it may be returned (row 0 never is); None: any.
        excluded: rows that are never returned.
        diversity: as of `Constraints`.
    """

    n: int
    allowed: Mask | None = None
    excluded: Rows = NO_ROWS
    diversity: float = 0.0

    def permits(self, rows: Rows) -> Mask:
        """Return whether each of some rows may be returned."""
        permitted: Mask = ~are_among(rows, self.excluded) & (rows != PADDING_ROW)
        if self.allowed is not None:
            permitted &= self.allowed[rows]
        return permitted

    def permits_any(self, catalog: Catalog) -> bool:
        """Return whether at least one item of a catalog may be returned."""
        return bool(self.permits(np.arange(1, len(catalog) + 1)).any())


def find_seen(catalog: Catalog, history: Iterable[Event], constraints: Constraints) -> Rows:
    """Find the rows of the items of a history, if the constraints exclude them."""
    if not constraints.exclude_seen:
        return NO_ROWS
    return catalog.rows({event.item_id for event in history})


def select_rows(
    catalog: Catalog, seen: Rows, constraints: Constraints, *, has_item_space: bool
) -> Selection:
    """Translate the constraints of a query into rows of a catalog.

    Args:
        seen: rows of `find_seen`.
        has_item_space: whether the model has item vectors that diversity can compare.
    """
    excluded = seen
    if constraints.exclude:
        excluded = np.union1d(excluded, catalog.rows(constraints.exclude))
    allowed = constraints.allowed
    if constraints.include is not None:
        included = np.zeros(len(catalog) + 1, dtype=np.bool_)
        included[catalog.rows(constraints.include)] = True
        allowed = included if allowed is None else allowed & included
    return Selection(
        n=constraints.n,
        allowed=allowed,
        excluded=excluded,
        diversity=constraints.diversity if has_item_space else 0.0,
    )


def require_permitted(rows: Rows, selection: Selection) -> None:
    """Check that an index returned permitted rows only: some kinds ignore a filter silently.

    Raises:
        AssertionError: if it returned others.
    """
    refused = len(rows) - np.count_nonzero(selection.permits(rows))
    if refused:
        raise AssertionError(
            f"an index must return permitted rows only, but returned {refused} others; rebuild the "
            "index as a flat one"
        )
