"""From ranked rows to items, filled up with popular ones."""

from collections.abc import Sequence

import numpy as np

from model.catalog import Catalog
from model.inference.answers import Fallback, Reason, ScoredItem, ScorePart
from model.inference.ranking import Ranking
from model.inference.selection import Rows, Scores, Selection


def fill_up(
    catalog: Catalog, selection: Selection, ranking: Ranking | None, *, strict: bool
) -> tuple[tuple[ScoredItem, ...], Fallback | None]:
    """Name the items of a ranking, and add popular ones where it holds fewer than selected.

    Args:
        ranking: None where the history has no known event.
        strict: add no popular items.
    """
    fallback: Fallback | None = "no_history" if ranking is None else None
    ranked = (
        ()
        if ranking is None
        else to_items(catalog, ranking.rows, ranking.scores, "model", ranking.parts)
    )
    missing = selection.n - len(ranked)
    if not missing or strict:
        return ranked, fallback
    is_left = np.ones(len(catalog) + 1, dtype=np.bool_)
    if selection.allowed is not None:
        is_left &= selection.allowed
    is_left[selection.excluded] = False
    if ranking is not None:
        is_left[ranking.rows] = False
    rows = catalog.rows_by_popularity[is_left[catalog.rows_by_popularity]][:missing]
    counts = catalog.recent_popularity[rows - 1].astype(np.float32)
    popular = to_items(catalog, rows, counts, "popular")
    return ranked + popular, fallback or ("popular" if popular else None)


def to_items(
    catalog: Catalog,
    rows: Rows,
    scores: Scores,
    reason: Reason,
    parts: Sequence[tuple[ScorePart, ...]] | None = None,
) -> tuple[ScoredItem, ...]:
    """Name the items of some rows."""
    of_rows = [None] * len(rows) if parts is None else parts
    return tuple(
        ScoredItem(row, catalog.item_ids[row - 1], score, reason, of_row)
        for row, score, of_row in zip(rows.tolist(), scores.tolist(), of_rows, strict=True)
    )
