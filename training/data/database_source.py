"""Events and items of the service, read from its database by SELECT."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
from sqlalchemy import (
    JSON,
    URL,
    BigInteger,
    Select,
    column,
    create_engine,
    func,
    make_url,
    select,
    table,
)
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from training.data.columns import (
    EVENT_SCHEMA,
    ITEM_SCHEMA,
    STORED_EVENT_SCHEMA,
    RawTable,
    UnreadableSourceError,
    parse_events,
    parse_items,
    parse_stored_events,
)
from training.data.erasures import Erasures

CHUNK_ROWS = 50_000

# Declared here, since training may not import the service.
EVENTS = table(
    "events",
    column("id"),
    column("user_id"),
    column("item_id"),
    column("at", BigInteger),
    column("action"),
    column("value"),
    column("received_at", BigInteger),
    column("event_id"),
    column("sender_event_id"),
    column("recommendation_id"),
    column("properties", JSON),
)
ERASED_USERS = table("erased_users", column("digest"), column("erased_at", BigInteger))
ITEMS = table("items", column("item_id"), column("title"), column("categories", JSON))

_COLUMNS = ("user_id", "item_id", "at", "action", "value")
_EVENT_CHUNK = pl.Schema(
    {
        "id": pl.String(),
        "user_id": pl.String(),
        "item_id": pl.String(),
        "timestamp": EVENT_SCHEMA["timestamp"],
        "action": pl.String(),
        "value": pl.Float64(),
    }
)
_STORED_COLUMNS = ("user_id", "item_id", "at", *list(STORED_EVENT_SCHEMA)[3:])
_STORED_CHUNK = pl.Schema({"id": pl.String(), **STORED_EVENT_SCHEMA})
_ERASURES = pl.Schema({"digest": pl.String(), "erased_at": pl.Int64()})


def read_database_events(
    address: str, until: int | None = None, *, known_by: int | None = None
) -> pl.DataFrame:
    """Read every event of the service up to and including `until`, in order of arrival.

    Erased users are left out, even if an old copy of their events was restored. Rows are streamed
    in chunks.

    Args:
        address: a database URL, such as `sqlite:///kairos.db` or `postgresql://user@host/kairos`.
        until: epoch microseconds, UTC.
        known_by: leave out events that arrived later; epoch microseconds, UTC.

    Raises:
        EventSourceError: if the database cannot be read, or holds an invalid event.
    """
    chunks = stream_database_events(address, until, known_by=known_by)
    return pl.concat([EVENT_SCHEMA.to_frame(), *chunks])


def stream_database_events(
    address: str, until: int | None = None, *, known_by: int | None = None
) -> Iterator[pl.DataFrame]:
    """Read the same in chunks, for more events than fit into memory."""
    erasures = read_erasures(address)
    columns = (EVENTS.c[name] for name in ("id", *_COLUMNS))
    selection = select(*columns).order_by(EVENTS.c.id)
    if until is not None:
        selection = selection.where(EVENTS.c.at <= until)
    if known_by is not None:
        selection = selection.where(EVENTS.c.received_at <= known_by)
    for name, frame in _stream_chunks(address, selection, _EVENT_CHUNK):
        yield erasures.drop_erased(
            parse_events(RawTable(name, frame, locate=_locate_events(frame)))
        )


def find_last_event(address: str) -> int:
    """Find the key of the latest event of the service in order of arrival; 0 without any.

    Raises:
        EventSourceError: if the database cannot be read.
    """
    selection: Select[Any] = select(func.coalesce(func.max(EVENTS.c.id), 0))
    ((_, frame),) = _stream_chunks(address, selection, pl.Schema({"id": pl.Int64()}))
    return int(frame.item())


def count_events(address: str, last: int) -> int:
    """Count the events with keys up to and including one, those of erased users included.

    Raises:
        EventSourceError: if the database cannot be read.
    """
    selection: Select[Any] = select(func.count()).select_from(EVENTS).where(EVENTS.c.id <= last)
    ((_, frame),) = _stream_chunks(address, selection, pl.Schema({"events": pl.Int64()}))
    return int(frame.item())


def stream_event_range(address: str, after: int, last: int) -> Iterator[pl.DataFrame]:
    """Read the events with keys in a range in chunks, in order of arrival.

    Erased users are left out.

    Args:
        after: the key before the range.
        last: the last key of the range.

    Yields:
        Frames in `EVENT_SCHEMA` with the keys as a further column `position`.

    Raises:
        EventSourceError: if the database cannot be read, or holds an invalid event.
    """
    erasures = read_erasures(address)
    columns = (EVENTS.c[name] for name in ("id", *_COLUMNS))
    selection = select(*columns).where(EVENTS.c.id > after, EVENTS.c.id <= last)
    for name, frame in _stream_chunks(address, selection.order_by(EVENTS.c.id), _EVENT_CHUNK):
        events = parse_events(RawTable(name, frame, locate=_locate_events(frame)))
        position = frame["id"].cast(pl.Int64).alias("position")
        yield erasures.drop_erased(events.with_columns(position))


def stream_stored_events(address: str, until: int | None = None) -> Iterator[pl.DataFrame]:
    """Read every event in chunks, as `stream_database_events` does, in `STORED_EVENT_SCHEMA`."""
    erasures = read_erasures(address)
    columns = (EVENTS.c[name] for name in ("id", *_STORED_COLUMNS))
    selection = select(*columns).order_by(EVENTS.c.id)
    if until is not None:
        selection = selection.where(EVENTS.c.at <= until)
    place = _STORED_COLUMNS.index("properties") + 1
    for name, frame in _stream_chunks(address, selection, _STORED_CHUNK, text_at=place):
        yield erasures.drop_erased(
            parse_stored_events(RawTable(name, frame, locate=_locate_events(frame)))
        )


def read_erasures(address: str) -> Erasures:
    """Read the users that the service has erased.

    Raises:
        EventSourceError: if the database cannot be read.
    """
    chunks = _stream_chunks(address, select(ERASED_USERS), _ERASURES)
    return Erasures({digest: until for _, frame in chunks for digest, until in frame.iter_rows()})


def format_database_name(address: str) -> str:
    """Format an address without its password.

    Raises:
        EventSourceError: if the address is not one of SQLite or PostgreSQL.
    """
    return _parse_address(address).render_as_string(hide_password=True)


def read_database_items(address: str) -> pl.DataFrame:
    """Read every item of the service, ordered by id.

    Raises:
        EventSourceError: if the database cannot be read.
    """
    selection = select(ITEMS).order_by(ITEMS.c.item_id)
    chunks = [
        parse_items(RawTable(name, frame, locate=lambda row: f"item {row + 1}"))
        for name, frame in _stream_chunks(address, selection, ITEM_SCHEMA)
    ]
    return pl.concat([ITEM_SCHEMA.to_frame(), *chunks])


def _locate_events(chunk: pl.DataFrame) -> Callable[[int], str]:
    return lambda row: f"event {chunk['id'][row]}"


def _stream_chunks(
    address: str,
    selection: Select[tuple[object, ...]],
    schema: pl.Schema,
    *,
    text_at: int | None = None,
) -> Iterator[tuple[str, pl.DataFrame]]:
    """Execute a selection; yield the address without password, and one frame per chunk.

    Args:
        text_at: position of a column of JSON objects, which become text.
    """
    url = _parse_address(address)
    name = url.render_as_string(hide_password=True)
    engine = create_engine(url)
    try:
        with engine.connect().execution_options(yield_per=CHUNK_ROWS) as connection:
            for rows in connection.execute(selection).partitions():
                values: list[tuple[object, ...]] = [tuple(row) for row in rows]
                if text_at is not None:
                    values = [_format_object(row, text_at) for row in values]
                yield name, pl.DataFrame(values, schema, orient="row", strict=False)
    except SQLAlchemyError as error:
        raise UnreadableSourceError(
            name,
            "events are read from the tables of a migrated Kairos database",
            f"reading it failed: {_cut_first_line(error)}",
            "check the address, and migrate the database if it is new",
        ) from error
    finally:
        engine.dispose()


def _format_object(row: tuple[object, ...], place: int) -> tuple[object, ...]:
    if row[place] is None:
        return row
    text = json.dumps(row[place], ensure_ascii=False, separators=(",", ":"))
    return (*row[:place], text, *row[place + 1 :])


def _parse_address(address: str) -> URL:
    try:
        url = make_url(address)
    except ArgumentError as error:
        raise UnreadableSourceError(
            "",
            "a database address looks like sqlite:///kairos.db or postgresql://user@host/kairos",
            "this one cannot be read as one",
            "correct it",
        ) from error
    backend = url.drivername.partition("+")[0]
    if backend in ("postgresql", "postgres"):
        return url.set(drivername="postgresql+psycopg")
    if backend != "sqlite":
        raise UnreadableSourceError(
            "",
            "events are read from SQLite or PostgreSQL",
            f"the address is one of {backend!r}",
            "export them to Parquet instead",
        )
    # Opening a missing SQLite file would create it.
    if not Path(url.database or "").is_file():
        raise UnreadableSourceError(
            "",
            "a SQLite database must exist to be read",
            f"there is no file {url.database!r}",
            "check the path (an absolute one needs four slashes: sqlite:////data/kairos.db)",
        )
    return url


def _cut_first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
