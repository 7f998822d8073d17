"""Preparing a query for the model: known events, tensors, and warnings."""

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from model.batch import KnownHistory, SequenceBatch, collate, look_up_history
from model.bundle.bundle import Bundle
from model.bundle.manifest import DataWindow
from model.history import Query
from model.interfaces import SequenceEncoder

WARNED_BEYOND = 0.1
"""A query time further past the training data than this share of their span is warned of."""


class PreparedQuery(NamedTuple):
    """A query as the model reads it.

    Attributes:
        history: the known events.
        batch: the same as tensors, at the query time; None where no event is known.
        warnings: stable codes, "beyond_training_window" or "history_truncated".
    """

    history: KnownHistory
    batch: SequenceBatch | None
    warnings: tuple[str, ...]


def prepare_query(bundle: Bundle, query: Query) -> PreparedQuery:
    """Look up the history of a query, and collate it at the query time."""
    history = read_history(bundle, query, max_history=bundle.manifest.max_history)
    window = bundle.manifest.data_window
    warnings = list_warnings(window, query.query_time, truncated=history.truncated)
    batch = collate_at(query, [history]) if history.events else None
    return PreparedQuery(history, batch, warnings)


def read_history(bundle: Bundle, query: Query, *, max_history: int) -> KnownHistory:
    """Look up the most recent known events of a query."""
    return look_up_history(
        query,
        bundle.catalog,
        bundle.action_rows,
        ignored_actions=bundle.manifest.recommender.ignored_actions,
        max_history=max_history,
    )


def collate_at(query: Query, histories: Sequence[KnownHistory]) -> SequenceBatch:
    """Collate non-empty histories, all at the query time of `query`."""
    count = len(histories)
    return collate(histories, [query.query_time] * count, [query.query_time_withheld] * count)


def count_own_events(
    encoder: SequenceEncoder, event_times: Sequence[int], start: int, end: int
) -> int:
    """Count the events of positions start..end that depend on the query time.

    Args:
        event_times: of the whole history, ascending.
    """
    if not encoder.reads_baskets or start == end:
        return min(end - start, 1)
    return end - max(start, bisect_left(event_times, event_times[end - 1]))


def list_warnings(window: DataWindow, query_time: int, *, truncated: bool) -> tuple[str, ...]:
    """List the warnings of one query time, as stable codes."""
    is_beyond = query_time > window.last_at + WARNED_BEYOND * window.length
    codes = {"beyond_training_window": is_beyond, "history_truncated": truncated}
    return tuple(code for code, applies in codes.items() if applies)
