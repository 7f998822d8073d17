"""Whole files of events and items into the database, for a first fill or a move."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import polars as pl
from sqlalchemy import Engine, func, select
from sqlalchemy.orm import Session

from app.db.engine import WRITES, open_engine
from app.db.insert import insert_into
from app.db.tables import StoredEvent
from app.events.key import natural_key
from app.http.validation_errors import shown
from app.items.repository import ItemRepository
from app.users.repository import ErasureRepository
from model.clock import now
from model.errors import EventSourceError

CHUNK = 20_000
"""Rows per transaction."""

_LONGEST = {"user_id": 256, "item_id": 256, "action": 64}
"""Characters of what has a bound, as in the HTTP contract."""

_CONTROL = r"[\x00-\x1f\x7f-\x9f]"

OnChunk = Callable[[int], None]


class ImportedEvents(NamedTuple):
    """What became of a table of events: how many were new, known already, of erased users."""

    stored: int
    known: int
    erased: int


def import_events(
    database_url: str, events: pl.DataFrame, *, on_chunk: OnChunk | None = None
) -> ImportedEvents:
    """Store the events of a table read by `training.data.sources.read_events`.

    An event's key is the one it would have had in a request without `event_id`, so importing what
    was sent already adds nothing, and neither does importing a table again. Of events that equal
    each other in every part of that key, all but the first get keys with a number: what the table
    holds twice is kept twice. What happened to users before they were erased is left out.

    Raises:
        EventSourceError: naming the row and column of what the service does not store.
    """
    _refuse_unstorable(events, *_LONGEST)
    repeated = events.with_columns(
        at=pl.col("timestamp").cast(pl.Int64),
        occurrence=pl.int_range(pl.len()).over("user_id", "item_id", "action", "timestamp"),
    )
    columns = ("user_id", "item_id", "action", "at", "value", "occurrence")
    received_at = now()
    engine = open_engine(database_url)
    added = erased = 0
    for chunk in _chunks(repeated.select(columns)):
        rows = [_event_row(row, received_at) for row in chunk]
        with _writing(engine) as session, session.begin():
            covering = ErasureRepository(session).covering(rows, adding_to=StoredEvent)
            living = [row for row, until in zip(rows, covering, strict=True) if until is None]
            erased += len(rows) - len(living)
            if living:
                added += _add(session, living)
        if on_chunk is not None:
            on_chunk(len(rows))
    engine.dispose()
    return ImportedEvents(stored=added, known=len(events) - added - erased, erased=erased)


def _add(session: Session, rows: list[dict[str, Any]]) -> int:
    statement = insert_into(session, StoredEvent).on_conflict_do_nothing(
        index_elements=["event_id"]
    )
    # The plain table: nobody needs the new keys back, which is what costs time.
    added = session.connection().execute(
        statement, rows, execution_options={"preserve_rowcount": True}
    )
    return added.rowcount


def import_items(database_url: str, items: pl.DataFrame, *, on_chunk: OnChunk | None = None) -> int:
    """Create or replace the items of a table read by `training.data.sources.read_items`.

    Raises:
        EventSourceError: naming the row and column of what the service does not store.
    """
    _refuse_unstorable(items, "item_id")
    updated_at = now()
    engine = open_engine(database_url)
    for chunk in _chunks(items.select("item_id", "title", "categories")):
        rows = [
            {
                "item_id": item_id,
                "title": title,
                "search_title": None if title is None else title.casefold(),
                "categories": categories or [],
                "available_from": None,
                "available_until": None,
                "properties": None,
                "updated_at": updated_at,
            }
            for item_id, title, categories in chunk
        ]
        with _writing(engine) as session, session.begin():
            ItemRepository(session).put(rows)
        if on_chunk is not None:
            on_chunk(len(rows))
    engine.dispose()
    return len(items)


def count_events(database_url: str) -> int:
    """How many events are stored."""
    engine = open_engine(database_url)
    with Session(engine) as session:
        counted = session.scalar(select(func.count()).select_from(StoredEvent)) or 0
    engine.dispose()
    return counted


def _refuse_unstorable(table: pl.DataFrame, *columns: str) -> None:
    for column in columns:
        texts, longest = table[column], _LONGEST[column]
        is_bad = (texts.str.len_chars() > longest) | texts.str.contains(_CONTROL)
        if is_bad.any():
            row = is_bad.arg_max()
            raise EventSourceError(
                f"row {(row or 0) + 1}, column {column!r}: the service stores at most {longest} "
                f"characters, none of them a control character, but got {shown(texts[row or 0])}; "
                "change it, or drop the row"
            )


def _event_row(row: tuple[Any, ...], received_at: int) -> dict[str, Any]:
    user_id, item_id, action, at, value, occurrence = row
    return {
        "event_id": natural_key(user_id, item_id, action, at, occurrence),
        "user_id": user_id,
        "item_id": item_id,
        "action": action,
        "at": at,
        "value": value,
        "recommendation_id": None,
        "properties": None,
        "received_at": received_at,
    }


def _chunks(table: pl.DataFrame) -> Iterator[list[tuple[Any, ...]]]:
    for part in table.iter_slices(CHUNK):
        yield part.rows()


def _writing(engine: Engine) -> Session:
    return Session(engine.execution_options(**WRITES))
