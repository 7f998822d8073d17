"""Bulk import: whole files of events and items into the database."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import polars as pl
from sqlalchemy import Engine, func, select
from sqlalchemy.orm import Session

from app.db.engine import WRITES, open_engine
from app.db.erasures import ErasureRepository
from app.db.events import EventRow, compute_natural_key
from app.db.insert import insert_into
from app.db.tables import StoredEvent
from app.http.validation_errors import abbreviate
from app.items.repository import ItemRepository, ItemRow
from model.clock import now
from model.errors import EventSourceError

CHUNK = 20_000
"""Rows per transaction."""
ITEM_CHUNK = 1_000
"""Items per transaction: other writers of items wait for it, since it holds the change counter."""

_MAX_LENGTHS = {"user_id": 256, "item_id": 256, "action": 64}
"""Maximum lengths in characters, as in the HTTP contract."""

_CONTROL = r"[\x00-\x1f\x7f-\x9f]"

OnChunk = Callable[[int], None]


class ImportedEvents(NamedTuple):
    """Counts of an import: rows that were stored, already known, or of erased users."""

    stored: int
    known: int
    erased: int


def import_events(
    database_url: str, events: pl.DataFrame, *, on_chunk: OnChunk | None = None
) -> ImportedEvents:
    """Store the events of a table read by `training.data.sources.read_events`.

    An event gets the key that it would get in a request without `event_id`, so importing events
    that were sent before, or importing a table again, adds nothing. Rows that are equal in every
    field of that key are numbered: an event that occurs twice in the table is stored twice. Events
    from before their user's erasure are left out.

    Args:
        on_chunk: called after each transaction with its number of rows.

    Raises:
        EventSourceError: if a value cannot be stored; the message names its row and column.
    """
    _require_storable(events, *_MAX_LENGTHS)
    numbered = events.with_columns(
        at=pl.col("timestamp").cast(pl.Int64),
        occurrence=pl.int_range(pl.len()).over("user_id", "item_id", "action", "timestamp"),
    )
    columns = ("user_id", "item_id", "action", "at", "value", "occurrence")
    received_at = now()
    engine = open_engine(database_url)
    added = erased = 0
    for chunk in _iterate_chunks(numbered.select(columns), CHUNK):
        rows = [_build_event_row(*values, received_at=received_at) for values in chunk]
        with _open_session(engine) as session, session.begin():
            erasures = ErasureRepository(session).find_erasures(rows, adding_to=StoredEvent)
            allowed = [row for row, until in zip(rows, erasures, strict=True) if until is None]
            erased += len(rows) - len(allowed)
            if allowed:
                added += _insert(session, allowed)
        if on_chunk is not None:
            on_chunk(len(rows))
    engine.dispose()
    return ImportedEvents(stored=added, known=len(events) - added - erased, erased=erased)


def import_items(database_url: str, items: pl.DataFrame, *, on_chunk: OnChunk | None = None) -> int:
    """Create or replace the items of a table read by `training.data.sources.read_items`.

    Returns:
        the number of rows of the table.

    Raises:
        EventSourceError: if a value cannot be stored; the message names its row and column.
    """
    _require_storable(items, "item_id")
    updated_at = now()
    engine = open_engine(database_url)
    for chunk in _iterate_chunks(items.select("item_id", "title", "categories"), ITEM_CHUNK):
        rows = [
            ItemRow(item_id, title, categories or [], updated_at)
            for item_id, title, categories in chunk
        ]
        with _open_session(engine) as session, session.begin():
            ItemRepository(session).put(rows)
        if on_chunk is not None:
            on_chunk(len(rows))
    engine.dispose()
    return len(items)


def count_events(database_url: str) -> int:
    """Count the stored events."""
    engine = open_engine(database_url)
    with Session(engine) as session:
        count = session.scalar(select(func.count()).select_from(StoredEvent)) or 0
    engine.dispose()
    return count


def _build_event_row(
    user_id: str,
    item_id: str,
    action: str,
    at: int,
    value: float | None,
    occurrence: int,
    *,
    received_at: int,
) -> EventRow:
    return EventRow(
        event_id=compute_natural_key(user_id, item_id, action, at, occurrence),
        user_id=user_id,
        item_id=item_id,
        action=action,
        at=at,
        value=value,
        recommendation_id=None,
        properties=None,
        received_at=received_at,
    )


def _insert(session: Session, rows: list[EventRow]) -> int:
    """Insert rows and return how many were new."""
    statement = insert_into(session, StoredEvent).on_conflict_do_nothing(
        index_elements=["event_id"]
    )
    # Through the connection: the ORM would return the new primary keys, which costs most time.
    result = session.connection().execute(
        statement, [row._asdict() for row in rows], execution_options={"preserve_rowcount": True}
    )
    return result.rowcount


def _require_storable(table: pl.DataFrame, *columns: str) -> None:
    for column in columns:
        texts, max_length = table[column], _MAX_LENGTHS[column]
        is_bad = (texts.str.len_chars() > max_length) | texts.str.contains(_CONTROL)
        if is_bad.any():
            row = is_bad.arg_max()
            raise EventSourceError(
                f"row {(row or 0) + 1}, column {column!r}: the service stores at most {max_length} "
                f"characters, none of them a control character, but got "
                f"{abbreviate(texts[row or 0])}; change it, or drop the row"
            )


def _iterate_chunks(table: pl.DataFrame, rows: int) -> Iterator[list[tuple[Any, ...]]]:
    for part in table.iter_slices(rows):
        yield part.rows()


def _open_session(engine: Engine) -> Session:
    return Session(engine.execution_options(**WRITES))
