"""Creation of an SQLite database from whole tables, in a fraction of the time of an import.

Until the database is complete, nobody else can have opened it. So it needs no journal, no index
before the rows, and no search for events that are stored already.
"""

import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import chain
from pathlib import Path

import polars as pl

from app.db.clock import read_database_time
from app.db.events import compute_natural_key
from app.imports import ImportedEvents, OnChunk, import_items, require_storable, split_by_time
from migrations.run import upgrade
from model.errors import KairosError
from model.event_time import TimeBounds

CHUNK = 50_000
"""Rows per report of progress."""
_CACHE_KIB = 400_000
_NATURAL_FIELDS = ("user_id", "item_id", "action", "timestamp")
_ROWS = 50
"""Rows per statement."""

_Row = tuple[str, str, str, str, int, float | None, int]


class DatabaseExistsError(KairosError):
    """A database stands where one was to be created."""

    code = "database_exists"


def create_database(
    file: Path,
    events: pl.DataFrame,
    items: pl.DataFrame | None,
    *,
    on_chunk: OnChunk | None = None,
) -> ImportedEvents:
    """Create a database that holds what an import of the tables would store.

    The file appears when it is complete: after a crash there is none. A process that creates the
    same file at the same time waits, and then fails.

    Args:
        events: of `training.data.sources.read_events`, without ids of their own.
        items: of `training.data.sources.read_items`.
        on_chunk: called after each chunk of events with its number of rows.

    Raises:
        DatabaseExistsError: if the file is there.
        EventSourceError: if a value cannot be stored; the message names its row and column.
    """
    require_storable(events, "user_id", "item_id", "action")
    file.parent.mkdir(parents=True, exist_ok=True)
    with _lock(file.parent):
        if file.exists():
            raise DatabaseExistsError(
                f"a database is created once, but {file} is there; start again, to use it"
            )
        return _create(file, events, items, on_chunk)


@contextmanager
def _lock(directory: Path) -> Iterator[None]:
    """Keep the creations of one directory apart; the kernel releases the lock of a killed one."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _create(
    file: Path, events: pl.DataFrame, items: pl.DataFrame | None, on_chunk: OnChunk | None
) -> ImportedEvents:
    incoming = file.with_name(f".{file.name}.incoming")
    for left in file.parent.glob(f"{incoming.name}*"):  # by a process that was killed
        left.unlink()
    database_url = f"sqlite:///{incoming.resolve()}"
    upgrade(database_url)
    if items is not None:
        import_items(database_url, items)
    received_at = read_database_time(database_url)
    plausible, left_out = split_by_time(events, TimeBounds.at(received_at))
    with closing(sqlite3.connect(incoming, isolation_level=None)) as connection:
        _fill(connection, plausible, received_at, on_chunk)
    with incoming.open("rb") as written:
        os.fsync(written.fileno())
    incoming.replace(file)
    return ImportedEvents(len(plausible), 0, 0, left_out)


def _fill(
    connection: sqlite3.Connection,
    events: pl.DataFrame,
    received_at: int,
    on_chunk: OnChunk | None,
) -> None:
    """Insert events into an empty table, and index them afterwards, which sorts them once."""
    # The service's own connections set the journal again when they open the file.
    connection.execute("PRAGMA journal_mode=DELETE")
    connection.execute("PRAGMA journal_mode=OFF")
    connection.execute("PRAGMA synchronous=OFF")
    connection.execute(f"PRAGMA cache_size=-{_CACHE_KIB}")
    connection.execute("PRAGMA threads=2")
    # Indexes; and triggers, which are for clicks: these events name no recommendation.
    beside = connection.execute(
        "SELECT type, name, sql FROM sqlite_master "
        "WHERE type IN ('index', 'trigger') AND tbl_name = 'events' AND sql IS NOT NULL"
    ).fetchall()
    connection.execute("BEGIN")
    for kind, name, _ in beside:
        connection.execute(f'DROP {kind} "{name}"')
    numbered = events.with_columns(pl.col("timestamp").cast(pl.Int64), occurrence=_number(events))
    for chunk in numbered.iter_slices(CHUNK):
        _insert(connection, list(_build_rows(chunk, received_at)))
        if on_chunk is not None:
            on_chunk(len(chunk))
    for _, _, statement in beside:
        connection.execute(statement)
    connection.execute("COMMIT")


def _insert(connection: sqlite3.Connection, rows: list[_Row]) -> None:
    """Insert rows, many per statement: each statement costs as much as a row."""
    whole = len(rows) - len(rows) % _ROWS
    batches = (rows[start : start + _ROWS] for start in range(0, whole, _ROWS))
    connection.executemany(_build_insert(_ROWS), (list(chain(*batch)) for batch in batches))
    connection.executemany(_build_insert(1), rows[whole:])


def _build_insert(rows: int) -> str:
    values = ", ".join(["(?, ?, ?, ?, ?, ?, ?)"] * rows)
    return (
        "INSERT INTO events (event_id, user_id, item_id, action, at, value, received_at) "
        f"VALUES {values}"
    )


def _number(events: pl.DataFrame) -> pl.Series:
    """Count the equal events before each event."""
    is_repeated = events.select(_NATURAL_FIELDS).is_duplicated()
    numbers = (
        events.select(*_NATURAL_FIELDS)
        .with_row_index("row")
        .filter(is_repeated)
        .select("row", occurrence=pl.int_range(pl.len(), dtype=pl.Int64).over(_NATURAL_FIELDS))
    )
    occurrences = pl.zeros(len(events), dtype=pl.Int64, eager=True)
    return occurrences.scatter(numbers["row"], numbers["occurrence"])


def _build_rows(events: pl.DataFrame, received_at: int) -> Iterator[_Row]:
    columns = ("user_id", "item_id", "action", "timestamp", "value", "occurrence")
    for user_id, item_id, action, at, value, occurrence in events.select(columns).iter_rows():
        event_id = compute_natural_key(user_id, item_id, action, at, occurrence)
        yield event_id, user_id, item_id, action, at, value, received_at
