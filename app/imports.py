"""Bulk import: whole files of events and items into the database."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import polars as pl
from pydantic import TypeAdapter, ValidationError
from sqlalchemy import Engine, func, select
from sqlalchemy.orm import Session

from app.db.clock import read_database_time
from app.db.engine import WRITES, open_engine
from app.db.equal_events import EqualEvents
from app.db.erasures import ErasureRepository
from app.db.events import (
    EventRepository,
    EventRow,
    build_inserts,
    compute_natural_key,
    require_stored,
)
from app.db.insert import insert_into
from app.db.tables import StoredEvent
from app.http.properties import Properties
from app.http.validation_errors import abbreviate
from app.items.repository import ItemRepository, ItemRow
from app.items.schemas import ItemDescription
from model.errors import EventSourceError
from model.event_time import TimeBounds

CHUNK = 20_000
"""Rows per transaction."""
CLICK_CHUNK = 1_000
"""Rows per transaction if some name a recommendation: other clicks wait for it."""
ITEM_CHUNK = 1_000
"""Items per transaction: other writers of items wait for it, since it holds the change counter."""

_MAX_LENGTHS = {
    **dict.fromkeys(("user_id", "item_id"), 256),
    "action": 64,
    **dict.fromkeys(("event_id", "sender_event_id", "recommendation_id"), 256),
}
"""Maximum lengths in characters, as in the HTTP contract."""

_ITEM_RULES = {
    "item_id": "an item's id has 1 to 256 characters, none of them a control character",
    "title": "an item's title has at most 1,024 characters, none of them NUL",
    "categories": "an item has at most 100 categories, each of 1 to 256 characters, none of them a "
    "control character",
}
"""What `ItemDescription` requires, in words."""

_CONTROL = r"[\x00-\x1f\x7f-\x9f]"

_NATURAL_FIELDS = ("user_id", "item_id", "action", "timestamp")

# A table need not have these.
_OPTIONAL_COLUMNS: dict[str, pl.DataType] = {
    "event_id": pl.String(),
    "sender_event_id": pl.String(),
    "recommendation_id": pl.String(),
    "properties": pl.String(),
    "received_at": pl.Datetime("us", "UTC"),
}

OnChunk = Callable[[int], None]


class ImportedEvents(NamedTuple):
    """Counts of an import.

    Attributes:
        stored: rows that were new.
        known: rows that are stored already.
        erased: rows of erased users.
        left_out: the rows with an implausible time, unchanged, each with its `reason`.
    """

    stored: int
    known: int
    erased: int
    left_out: pl.DataFrame


def import_events(
    database_url: str, events: pl.DataFrame, *, on_chunk: OnChunk | None = None
) -> ImportedEvents:
    """Store the events of a table read by `read_stored_events` of `training.data.sources`.

    An event keeps its id, or gets the key that it would get in a request without `event_id`; rows
    without id that are equal in every field of that key are numbered, so that an event that occurs
    twice in the table is stored twice. Events that are stored already, under whatever id, are not
    stored again; see `EqualEvents`. Events from before their user's erasure are left out, and so
    are those with a time that a request is refused with (`model.event_time`).

    Args:
        on_chunk: called after each transaction with its number of rows.

    Raises:
        EventSourceError: if a value cannot be stored; the message names its row and column.
        DatabaseDamagedError: if an event is not stored, as the ids of rows are in disorder.
    """
    events = events.with_columns(
        pl.lit(None, dtype).alias(name)
        for name, dtype in _OPTIONAL_COLUMNS.items()
        if name not in events.columns
    )
    require_storable(events, *_MAX_LENGTHS)
    _require_storable_properties(events)
    received_at = read_database_time(database_url)
    plausible, left_out = split_by_time(events, TimeBounds.at(received_at))
    numbered = plausible.with_columns(
        pl.col("timestamp", "received_at").cast(pl.Int64),
        occurrence=pl.int_range(pl.len()).over(*_NATURAL_FIELDS, pl.col("event_id").is_null()),
    )
    repeated = numbered.filter(pl.len().over(_NATURAL_FIELDS) > 1)
    equal_events = EqualEvents(_build_event_row(one, received_at) for one in _iterate(repeated))
    engine = open_engine(database_url)
    added = erased = 0
    try:
        for chunk in _iterate_chunks(numbered):
            rows = [_build_event_row(one, received_at) for one in _iterate(chunk)]
            with _open_session(engine) as session, session.begin():
                erasures = ErasureRepository(session).find_erasures(rows, adding_to=StoredEvent)
                allowed = [row for row, until in zip(rows, erasures, strict=True) if until is None]
                erased += len(rows) - len(allowed)
                added += _insert(session, equal_events.drop_stored(session, allowed))
            if on_chunk is not None:
                on_chunk(len(rows))
    finally:
        engine.dispose()
    return ImportedEvents(added, len(plausible) - added - erased, erased, left_out)


def _iterate_chunks(events: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Split events into those of one transaction each."""
    for chunk in events.iter_slices(CHUNK):
        if chunk["recommendation_id"].null_count() == len(chunk):
            yield chunk
        else:
            yield from chunk.iter_slices(CLICK_CHUNK)


def split_by_time(events: pl.DataFrame, bounds: TimeBounds) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Split off the events with an implausible time, and add the reason to them."""
    at = pl.col("timestamp").cast(pl.Int64)
    reason = (
        pl.when(at < bounds.earliest)
        .then(pl.lit("too_old"))
        .when(at > bounds.latest)
        .then(pl.lit("in_the_future"))
    )
    checked = events.with_columns(reason=reason)
    left_out = checked.filter(pl.col("reason").is_not_null())
    return events.filter(at.is_between(*bounds)), left_out


def import_items(database_url: str, items: pl.DataFrame, *, on_chunk: OnChunk | None = None) -> int:
    """Create or replace the items of a table read by `training.data.sources.read_items`.

    All rows are checked first, by the rules of a request: clients and readers of the database
    depend on them. A category that an item has twice is stored once.

    Returns:
        the number of rows of the table.

    Raises:
        EventSourceError: if a request with a value would be refused; the message names its row and
            column, and nothing is stored.
    """
    checked = _check_items(items.select("item_id", "title", "categories"))
    updated_at = read_database_time(database_url)
    engine = open_engine(database_url)
    for begin in range(0, len(checked), ITEM_CHUNK):
        rows = [
            ItemRow(item.item_id, item.title, item.categories, updated_at)
            for item in checked[begin : begin + ITEM_CHUNK]
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


def _iterate(table: pl.DataFrame) -> Iterator[dict[str, Any]]:
    return table.iter_rows(named=True)


def _build_event_row(event: Mapping[str, Any], now: int) -> EventRow:
    """Build the row of an event.

    Args:
        now: epoch microseconds, when an event arrives that does not say when it did.
    """
    properties, received_at = event["properties"], event["received_at"]
    natural = (event["user_id"], event["item_id"], event["action"], event["timestamp"])
    return EventRow(
        event["event_id"] or compute_natural_key(*natural, event["occurrence"]),
        *natural,
        value=event["value"],
        recommendation_id=event["recommendation_id"],
        properties=None if properties is None else json.loads(properties),
        # No event arrives after its import: incremental reads would pass it over.
        received_at=now if received_at is None else min(received_at, now),
        sender_event_id=event["sender_event_id"],
    )


def _insert(session: Session, rows: list[EventRow]) -> int:
    """Insert rows with ids in their order, and return how many were new."""
    if not rows:
        return 0
    if any(row.recommendation_id is not None for row in rows):
        # Those that a recommendation led to count as clicks, as those of a request do.
        return len(EventRepository(session).add(rows).new)
    statement = insert_into(session, StoredEvent).on_conflict_do_nothing()
    # Through the connection: the ORM would return the new primary keys, which costs most time.
    result = session.connection().execute(
        statement,
        build_inserts(session, rows),
        execution_options={"preserve_rowcount": True},
    )
    if result.rowcount < len(rows):
        require_stored(session, [row.event_id for row in rows])
    return result.rowcount


def require_storable(table: pl.DataFrame, *columns: str) -> None:
    """Check the texts of some columns by the rules of a request.

    Raises:
        EventSourceError: if one is too long or has a control character.
    """
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


def _check_items(items: pl.DataFrame) -> list[ItemDescription]:
    checked = []
    for row, (item_id, title, categories) in enumerate(items.iter_rows(), start=1):
        try:
            checked.append(
                ItemDescription(item_id=item_id, title=title, categories=categories or [])
            )
        except ValidationError as error:
            fault = error.errors()[0]
            column = str(fault["loc"][0])
            raise EventSourceError(
                f"row {row} (item {abbreviate(item_id)}), column {column!r}: "
                f"{_ITEM_RULES[column]}, but got {abbreviate(fault['input'])}; change it, or drop "
                "the row"
            ) from error
    return checked


def _require_storable_properties(events: pl.DataFrame) -> None:
    storable = TypeAdapter(Properties)
    for row, text in enumerate(events["properties"]):
        if text is None:
            continue
        try:
            storable.validate_python(json.loads(text), strict=True)
        except ValidationError as error:
            raise EventSourceError(
                f"row {row + 1}, column 'properties': {error.errors()[0]['msg']}, but got "
                f"{abbreviate(text)}; change it, or leave it empty"
            ) from error


def _open_session(engine: Engine) -> Session:
    return Session(engine.execution_options(**WRITES))
