"""The service's own events and items, read from its database by a plain SELECT."""

from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl
from sqlalchemy import (
    JSON,
    URL,
    BigInteger,
    Select,
    column,
    create_engine,
    make_url,
    select,
    table,
)
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from model.errors import EventSourceError
from training.data.columns import (
    EVENT_SCHEMA,
    ITEM_SCHEMA,
    RawTable,
    event_columns,
    item_columns,
)
from training.data.erasures import Erasures

CHUNK_ROWS = 50_000

# Named here rather than imported: training must not know the service, only its tables.
EVENTS = table(
    "events",
    column("id"),
    column("user_id"),
    column("item_id"),
    column("at", BigInteger),
    column("action"),
    column("value"),
    column("received_at", BigInteger),
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
_ERASURES = pl.Schema({"digest": pl.String(), "erased_at": pl.Int64()})


def read_database_events(
    address: str, until: int | None = None, *, known_by: int | None = None
) -> pl.DataFrame:
    """Every event of the service up to and including `until`, in order of arrival.

    Erased users are left out, even where an old copy of their events was put back. Rows are
    streamed, so the database sends one chunk at a time.

    Args:
        address: a database URL, such as `sqlite:///kairos.db` or `postgresql://user@host/kairos`.
        until: epoch microseconds, UTC.
        known_by: leave out what arrived later than this; epoch microseconds, UTC.

    Raises:
        EventSourceError: if the database cannot be read, or holds an event that cannot be one.
    """
    chunks = stream_database_events(address, until, known_by=known_by)
    return pl.concat([EVENT_SCHEMA.to_frame(), *chunks])


def stream_database_events(
    address: str, until: int | None = None, *, known_by: int | None = None
) -> Iterator[pl.DataFrame]:
    """The same a chunk at a time, for more events than memory holds."""
    erasures = read_erasures(address)
    columns = (EVENTS.c[name] for name in ("id", *_COLUMNS))
    selection = select(*columns).order_by(EVENTS.c.id)
    if until is not None:
        selection = selection.where(EVENTS.c.at <= until)
    if known_by is not None:
        selection = selection.where(EVENTS.c.received_at <= known_by)
    for name, frame in _chunks(address, selection, _EVENT_CHUNK):
        yield erasures.drop_erased(event_columns(RawTable(name, frame, place=_event_place(frame))))


def read_erasures(address: str) -> Erasures:
    """Whom the service has erased.

    Raises:
        EventSourceError: if the database cannot be read.
    """
    chunks = _chunks(address, select(ERASED_USERS), _ERASURES)
    return Erasures({digest: until for _, frame in chunks for digest, until in frame.iter_rows()})


def name_of_database(address: str) -> str:
    """An address without its password.

    Raises:
        EventSourceError: if events cannot be read from such an address.
    """
    return _url(address).render_as_string(hide_password=True)


def read_database_items(address: str) -> pl.DataFrame:
    """Every item the service was told of, by id.

    Raises:
        EventSourceError: if the database cannot be read.
    """
    selection = select(ITEMS).order_by(ITEMS.c.item_id)
    chunks = [
        item_columns(RawTable(name, frame, place=lambda row: f"item {row + 1}"))
        for name, frame in _chunks(address, selection, ITEM_SCHEMA)
    ]
    return pl.concat([ITEM_SCHEMA.to_frame(), *chunks])


def _event_place(chunk: pl.DataFrame) -> Callable[[int], str]:
    return lambda row: f"event {chunk['id'][row]}"


def _chunks(
    address: str, selection: Select[tuple[object, ...]], schema: pl.Schema
) -> Iterator[tuple[str, pl.DataFrame]]:
    """The address as errors may show it, with one frame after another."""
    url = _url(address)
    name = url.render_as_string(hide_password=True)
    engine = create_engine(url)
    try:
        with engine.connect().execution_options(yield_per=CHUNK_ROWS) as connection:
            for rows in connection.execute(selection).partitions():
                values = [tuple(row) for row in rows]
                yield name, pl.DataFrame(values, schema, orient="row", strict=False)
    except SQLAlchemyError as error:
        raise EventSourceError(
            f"{name}: events are read from the tables of a migrated Kairos database, but: "
            f"{_first_line(error)}; check the address, and migrate the database if it is new"
        ) from error
    finally:
        engine.dispose()


def _url(address: str) -> URL:
    try:
        url = make_url(address)
    except ArgumentError as error:
        raise EventSourceError(
            "a database address looks like sqlite:///kairos.db or postgresql://user@host/kairos, "
            "but this one cannot be read as one; correct it"
        ) from error
    backend = url.drivername.partition("+")[0]
    if backend in ("postgresql", "postgres"):
        return url.set(drivername="postgresql+psycopg")
    if backend != "sqlite":
        raise EventSourceError(
            f"events are read from SQLite or PostgreSQL, but the address says {backend!r}; "
            "export them to Parquet instead"
        )
    # Opening a SQLite file that is not there would create it.
    if not Path(url.database or "").is_file():
        raise EventSourceError(
            f"a SQLite database must exist to be read, but there is no file {url.database!r}; "
            "check the path (an absolute one needs four slashes: sqlite:////data/kairos.db)"
        )
    return url


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
