"""Whole files of events and items into the database, for a first fill or a move."""

import hashlib
from collections.abc import Callable, Iterator
from typing import Any

import polars as pl
from sqlalchemy import Engine, func, select
from sqlalchemy.orm import Session

from app.db.engine import WRITES, open_engine
from app.db.insert import insert_into
from app.db.tables import StoredEvent
from app.items.repository import ItemRepository
from model.clock import now

CHUNK = 20_000
"""Rows per transaction."""

OnChunk = Callable[[int], None]


def import_events(
    database_url: str, events: pl.DataFrame, *, on_chunk: OnChunk | None = None
) -> int:
    """Store the events of a table read by `training.sources.read_events`; answers how many are new.

    An event's key is a hash of what makes it and of its number among its equals, so importing the
    same table again adds nothing, and an event that really happened twice is kept twice.
    """
    repeated = events.with_columns(
        at=pl.col("timestamp").cast(pl.Int64),
        occurrence=pl.int_range(pl.len()).over("user_id", "item_id", "action", "timestamp"),
    )
    columns = ("user_id", "item_id", "action", "at", "value", "occurrence")
    received_at = now()
    engine = open_engine(database_url)
    added = 0
    for chunk in _chunks(repeated.select(columns)):
        rows = [_event_row(row, received_at) for row in chunk]
        with _writing(engine) as session, session.begin():
            statement = insert_into(session, StoredEvent).on_conflict_do_nothing(
                index_elements=["event_id"]
            )
            # The plain table: nobody needs the new keys back, which is what costs time.
            result = session.connection().execute(statement, rows)
            added += result.rowcount
        if on_chunk is not None:
            on_chunk(len(rows))
    engine.dispose()
    return added


def import_items(database_url: str, items: pl.DataFrame, *, on_chunk: OnChunk | None = None) -> int:
    """Create or replace the items of a table read by `training.sources.read_items`."""
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


def _event_row(row: tuple[Any, ...], received_at: int) -> dict[str, Any]:
    user_id, item_id, action, at, value, occurrence = row
    natural = "\0".join((user_id, item_id, action, str(at), str(occurrence)))
    return {
        "event_id": f"import:{hashlib.sha256(natural.encode()).hexdigest()}",
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
