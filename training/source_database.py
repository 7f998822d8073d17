"""The service's own events, read from its database by a plain SELECT."""

from collections.abc import Iterator
from pathlib import Path

import polars as pl
from sqlalchemy import URL, BigInteger, Select, column, create_engine, make_url, select, table
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from model.errors import EventSourceError
from training.source_columns import EVENT_SCHEMA, RawTable, event_columns

CHUNK_ROWS = 50_000

# Named here rather than imported: training must not know the service, only its table.
_EVENTS = table(
    "events",
    column("id"),
    column("user_id"),
    column("item_id"),
    column("action"),
    column("at", BigInteger),
    column("value"),
)
_CHUNK_SCHEMA = pl.Schema(
    {
        "id": pl.String(),
        "user_id": pl.String(),
        "item_id": pl.String(),
        "timestamp": EVENT_SCHEMA["timestamp"],
        "action": pl.String(),
        "value": pl.Float64(),
    }
)


def read_database(address: str, until: int | None = None) -> pl.DataFrame:
    """Every event of the `events` table up to and including `until`, in order of arrival.

    Rows are streamed, so the database sends one chunk at a time.

    Args:
        address: a database URL, such as `sqlite:///kairos.db` or `postgresql://user@host/kairos`.
        until: epoch microseconds, UTC.

    Raises:
        EventSourceError: if the database cannot be read, or holds an event that cannot be one.
    """
    url = _url(address)
    name = url.render_as_string(hide_password=True)
    try:
        chunks = [event_columns(chunk) for chunk in _chunks(url, name, _selection(until))]
    except SQLAlchemyError as error:
        raise EventSourceError(
            f"{name}: events are read from the table 'events' of a running database, but: "
            f"{_first_line(error)}; check the address, and migrate the database if it is new"
        ) from error
    return pl.concat([EVENT_SCHEMA.to_frame(), *chunks])


def _selection(until: int | None) -> Select[tuple[object, ...]]:
    events = _EVENTS.c
    selection = select(
        events.id, events.user_id, events.item_id, events.at, events.action, events.value
    ).order_by(events.id)
    return selection if until is None else selection.where(events.at <= until)


def _chunks(url: URL, name: str, selection: Select[tuple[object, ...]]) -> Iterator[RawTable]:
    engine = create_engine(url)
    try:
        with engine.connect().execution_options(yield_per=CHUNK_ROWS) as connection:
            for rows in connection.execute(selection).partitions():
                yield _raw(name, [tuple(row) for row in rows])
    finally:
        engine.dispose()


def _raw(name: str, rows: list[tuple[object, ...]]) -> RawTable:
    frame = pl.DataFrame(rows, schema=_CHUNK_SCHEMA, orient="row", strict=False)
    return RawTable(name, frame, place=lambda row: f"event {frame['id'][row]}")


def _url(address: str) -> URL:
    try:
        url = make_url(address)
    except ArgumentError as error:
        raise EventSourceError(
            "a database address looks like sqlite:///kairos.db or postgresql://user@host/kairos, "
            "but this one cannot be read as one; correct it"
        ) from error
    if url.get_backend_name() not in ("sqlite", "postgresql"):
        raise EventSourceError(
            f"events are read from SQLite or PostgreSQL, but the address says "
            f"{url.drivername!r}; export them to Parquet instead"
        )
    # Opening a SQLite file that is not there would create it.
    is_missing = url.get_backend_name() == "sqlite" and not Path(url.database or "").is_file()
    if is_missing:
        raise EventSourceError(
            f"a SQLite database must exist to be read, but there is no file {url.database!r}; "
            "check the path (an absolute one needs four slashes: sqlite:////data/kairos.db)"
        )
    return url.set(drivername="postgresql+psycopg") if url.drivername == "postgresql" else url


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
