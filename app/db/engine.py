"""Engines for the two databases Kairos runs on: SQLite embedded, PostgreSQL in production."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
from sqlalchemy import URL, Connection, Engine, Pool, create_engine, event, make_url
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError
from sqlalchemy.pool import ConnectionPoolEntry

from model.errors import KairosError

WRITES = {"kairos_writes": True}
"""Execution options of a connection that writes."""

_BUSY_MILLISECONDS = 5000
_POSTGRESQL_NAMES = frozenset({"postgresql", "postgres"})


class DatabaseUrlError(KairosError, ValueError):
    """A database URL names a database that Kairos does not support."""

    code = "database_url"


def parse_url(database_url: str) -> URL:
    """Parse a database URL, and set the driver that Kairos uses.

    Raises:
        DatabaseUrlError: if it is no URL, or names neither SQLite (in a file) nor PostgreSQL.
    """
    try:
        url = make_url(database_url)
    except ArgumentError as error:
        raise DatabaseUrlError(
            "a database URL must be a URL, but this one cannot be parsed; "
            "write sqlite:///path/to/file or postgresql://user@host/name"
        ) from error
    backend = url.drivername.partition("+")[0]
    if backend in _POSTGRESQL_NAMES:
        return url.set(drivername="postgresql+psycopg")
    if backend == "sqlite" and url.database not in (None, "", ":memory:"):
        return url.set(drivername="sqlite")
    raise DatabaseUrlError(
        "a database is SQLite in a file or PostgreSQL, but got "
        f"{url.render_as_string(hide_password=True)}; "
        "write sqlite:///path/to/file or postgresql://user@host/name"
    )


def open_engine(
    database_url: str,
    *,
    connections: int = 1,
    poolclass: type[Pool] | None = None,
    statement_seconds: float | None = None,
) -> Engine:
    """Create an engine with at most `connections` connections, each set up for durable writes.

    Args:
        poolclass: replaces the pool of `connections` connections.
        statement_seconds: the time limit of a PostgreSQL statement, lock waits included; None for
            none.
    """
    url = parse_url(database_url)
    pooling: dict[str, Any] = (
        {"pool_size": connections, "max_overflow": 0, "pool_timeout": 5}
        if poolclass is None
        else {"poolclass": poolclass}
    )
    common: dict[str, Any] = {
        "json_serializer": _to_json,
        "json_deserializer": orjson.loads,
        # Parameters are ids and events of users, which must not appear in error messages.
        "hide_parameters": True,
        **pooling,
    }
    if url.get_backend_name() == "sqlite":
        Path(str(url.database)).parent.mkdir(parents=True, exist_ok=True)
        engine = create_engine(url, **common)
        event.listen(engine, "connect", _set_up_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        return engine
    engine = create_engine(
        url,
        pool_pre_ping=True,
        connect_args={
            "connect_timeout": 3,
            # A host that vanished without closing its connections is detected in ten seconds.
            "tcp_user_timeout": 10_000,
            "keepalives_idle": 4,
            "keepalives_interval": 2,
            "keepalives_count": 3,
            "application_name": "kairos",
        },
        **common,
    )
    event.listen(engine, "connect", _build_postgresql_setup(statement_seconds))
    return engine


def _to_json(value: object) -> str:
    return orjson.dumps(value).decode()


def _set_up_sqlite(connection: DBAPIConnection, _: ConnectionPoolEntry) -> None:
    # Autocommit: the driver would otherwise begin transactions itself, and only before writes.
    connection.isolation_level = None
    cursor = connection.cursor()
    # First, so that switching to WAL waits for another process that switches, too.
    cursor.execute(f"PRAGMA busy_timeout={_BUSY_MILLISECONDS}")
    cursor.execute("PRAGMA journal_mode=WAL")
    # An acknowledged commit must survive a power cut, not only a crash of the process.
    cursor.execute("PRAGMA synchronous=FULL")
    cursor.execute("PRAGMA foreign_keys=ON")
    # Deleted rows are overwritten with zeros: an erased user must not be legible in the file.
    cursor.execute("PRAGMA secure_delete=ON")
    cursor.close()


def _build_postgresql_setup(
    statement_seconds: float | None,
) -> Callable[[DBAPIConnection, ConnectionPoolEntry], None]:
    """Build the function that sets up a new connection to PostgreSQL."""

    def set_up(connection: DBAPIConnection, _: ConnectionPoolEntry) -> None:
        cursor = connection.cursor()
        # An acknowledged commit must be on disk, whatever the server's or the role's configuration.
        # Stricter settings than "on" stay.
        cursor.execute(
            "SELECT set_config('synchronous_commit', 'on', false) "
            "WHERE current_setting('synchronous_commit') = 'off'"
        )
        if statement_seconds is not None:
            milliseconds = round(statement_seconds * 1000)
            cursor.execute(f"SET statement_timeout = {milliseconds}")
        cursor.close()
        connection.commit()

    return set_up


def _begin_sqlite(connection: Connection) -> None:
    # A transaction that reads first and then writes fails if another one wrote in between; one that
    # takes the write lock at its start waits for it instead.
    writes = connection.get_execution_options().get("kairos_writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
