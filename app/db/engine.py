"""Engines for the two databases Kairos runs on: SQLite embedded, PostgreSQL in production.

An engine translates the failures of its driver (see `app.db.failures`), respects the deadline of
the work that uses it (see `app.db.deadline`), and hands out no connection to a server or a file
that is not the right one any more.
"""

import sqlite3
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import orjson
from sqlalchemy import URL, Connection, Engine, Pool, create_engine, event, exc, make_url
from sqlalchemy.engine.interfaces import DBAPIConnection, Dialect
from sqlalchemy.pool import ConnectionPoolEntry, PoolProxiedConnection

from app.db.deadline import get_deadline
from app.db.failures import build_damage_error, translate_context
from app.db.sqlite_file import SqliteFile
from model.errors import KairosError

if TYPE_CHECKING:
    import psycopg

WRITES = {"kairos_writes": True}
"""Execution options of a connection that writes."""

IDENTITY = "identity"
"""Key of a connection's `info`: the `FileIdentity` of the SQLite file that it opened."""

_BUSY_SECONDS = 5.0
_SECONDS_BETWEEN_TRIES = 0.001
_PRIMARY_CODE = 0xFF
"""Mask of SQLite's extended codes of errors."""
_INSTRUCTIONS_PER_CHECK = 100_000
"""Instructions of SQLite's virtual machine between two looks at the deadline: milliseconds."""
_POSTGRESQL_NAMES = frozenset({"postgresql", "postgres"})
_STANDBY_SECONDS = 1.0
_OPENED_AT, _IS_NEW = "opened_at", "is_new"
_EXTRA_CONNECTIONS = 2


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
    except (exc.ArgumentError, ValueError) as error:
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
    needs_primary: bool = False,
    file: SqliteFile | None = None,
) -> Engine:
    """Create an engine with about `connections` connections, each set up for durable writes.

    Args:
        connections: how many stay open; a few more may be open for a moment.
        poolclass: replaces the pool of `connections` connections.
        statement_seconds: the time limit of a PostgreSQL statement, lock waits included; None for
            none.
        needs_primary: whether to connect only to a PostgreSQL server that accepts writes. If not,
            a standby among the hosts of the URL serves while none does.
        file: the file that the URL of an SQLite database names, shared by all engines of a
            `Database`. Without it, a missing file is created.
    """
    url = parse_url(database_url)
    pooling: dict[str, Any] = (
        {"pool_size": connections, "max_overflow": _EXTRA_CONNECTIONS, "pool_timeout": 5}
        if poolclass is None
        else {"poolclass": poolclass}
    )
    common: dict[str, Any] = {
        "json_serializer": _to_json,
        "json_deserializer": _from_json,
        # Parameters are ids and events of users, which must not appear in error messages.
        "hide_parameters": True,
        **pooling,
    }
    if url.get_backend_name() == "sqlite":
        engine = create_engine(url, **common)
        _listen_for_sqlite(engine, file or SqliteFile(Path(str(url.database))))
    else:
        engine = create_engine(
            url,
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
        _listen_for_postgresql(
            engine, statement_seconds=statement_seconds, needs_primary=needs_primary
        )
    event.listen(engine, "handle_error", translate_context, retval=True)
    return engine


def _to_json(value: object) -> str:
    return orjson.dumps(value).decode()


def _from_json(text: str | bytes) -> object:
    """Parse the JSON of a column.

    Raises:
        DatabaseDamagedError: if it is none; the error does not contain it, as it is data of users.
    """
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise build_damage_error(f"a column holds no JSON: {error.msg}") from None


def _listen_for_sqlite(engine: Engine, file: SqliteFile) -> None:
    file.path.parent.mkdir(parents=True, exist_ok=True)

    def connect(
        _: Dialect, __: ConnectionPoolEntry, ___: list[Any], options: dict[str, Any]
    ) -> DBAPIConnection:
        return cast(DBAPIConnection, file.connect(**options))

    def set_up(connection: DBAPIConnection, entry: ConnectionPoolEntry) -> None:
        try:
            _set_up_sqlite(connection)
        except BaseException:
            connection.close()
            raise
        entry.info[IDENTITY] = file.identify_opened()

    def check_out(
        _: DBAPIConnection, entry: ConnectionPoolEntry, __: PoolProxiedConnection
    ) -> None:
        _require_time()
        file.require(entry.info[IDENTITY])

    event.listen(engine, "do_connect", connect)
    event.listen(engine, "connect", set_up)
    event.listen(engine, "checkout", check_out)
    event.listen(engine, "begin", _begin_sqlite)


def _set_up_sqlite(connection: DBAPIConnection) -> None:
    # Autocommit: the driver would otherwise begin transactions itself, and only before writes.
    connection.isolation_level = None
    connection.set_progress_handler(_is_over, _INSTRUCTIONS_PER_CHECK)
    cursor = connection.cursor()
    # First, so that switching to WAL waits for another process that switches, too.
    cursor.execute(f"PRAGMA busy_timeout={round(_BUSY_SECONDS * 1000)}")
    cursor.execute("PRAGMA journal_mode=WAL")
    # An acknowledged commit must survive a power cut, not only a crash of the process.
    cursor.execute("PRAGMA synchronous=FULL")
    cursor.execute("PRAGMA foreign_keys=ON")
    # Deleted rows are overwritten with zeros: an erased user must not be legible in the file.
    cursor.execute("PRAGMA secure_delete=ON")
    # The first transaction opens the log. A file whose log is not there yet would be taken for one
    # that was replaced after the first write.
    cursor.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()
    cursor.close()


def _is_over() -> bool:
    """Whether SQLite is to interrupt the statement that runs."""
    deadline = get_deadline()
    return deadline is not None and deadline.has_passed


def _begin_sqlite(connection: Connection) -> None:
    deadline = get_deadline()
    seconds = _BUSY_SECONDS
    if deadline is not None:
        # SQLite looks at the deadline while it works, not while it waits for a lock.
        seconds = min(seconds, deadline.remaining_seconds)
    # A transaction that reads first and then writes fails if another one wrote in between; one that
    # takes the write lock at its start waits for it instead.
    if connection.get_execution_options().get("kairos_writes", False):
        _wait_for_write_lock(connection, seconds)
    else:
        connection.exec_driver_sql(f"PRAGMA busy_timeout={round(seconds * 1000)}")
        connection.exec_driver_sql("BEGIN")


def _wait_for_write_lock(connection: Connection, seconds: float) -> None:
    """Begin a transaction that writes as soon as no other process does.

    SQLite itself looks ten times a second. A process that writes without a pause has the lock again
    within a millisecond, so others would wait for it until their time is over.
    """
    driver = cast(sqlite3.Connection, connection.connection.driver_connection)
    connection.exec_driver_sql("PRAGMA busy_timeout=0")
    ends_at = time.monotonic() + seconds
    while time.monotonic() < ends_at:
        try:
            driver.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & _PRIMARY_CODE != sqlite3.SQLITE_BUSY:
                break
            time.sleep(_SECONDS_BETWEEN_TRIES)
        else:
            return
    # Here, because the errors of this call are translated.
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _listen_for_postgresql(
    engine: Engine, *, statement_seconds: float | None, needs_primary: bool
) -> None:
    import psycopg  # noqa: PLC0415 - SQLite needs no driver of PostgreSQL

    def check_out(
        connection: DBAPIConnection, entry: ConnectionPoolEntry, _: PoolProxiedConnection
    ) -> None:
        _require_time()
        deadline = get_deadline()
        if deadline is not None:
            deadline.hold(cast("psycopg.Connection[object]", connection))
        if entry.info.pop(_IS_NEW, False):
            return
        # Here, not with `pool_pre_ping`: a server that hangs is waited for up to the deadline only.
        try:
            engine.dialect.do_ping(connection)
        except psycopg.Error as error:
            raise exc.InvalidatePoolError from error
        is_old = time.monotonic() - entry.info[_OPENED_AT] > _STANDBY_SECONDS
        if _is_read_only(connection) and (needs_primary or is_old):
            # Every connection of the pool leads to the same server, and another may serve writes.
            raise exc.InvalidatePoolError

    def check_in(_: DBAPIConnection | None, entry: ConnectionPoolEntry) -> None:
        deadline = get_deadline()
        if deadline is not None and not deadline.release():
            entry.invalidate()

    event.listen(engine, "do_connect", _build_postgresql_connect(needs_primary=needs_primary))
    event.listen(engine, "connect", _build_postgresql_setup(statement_seconds))
    event.listen(engine, "checkout", check_out)
    event.listen(engine, "checkin", check_in)


def _require_time() -> None:
    deadline = get_deadline()
    if deadline is not None:
        deadline.require_time()


def _build_postgresql_connect(
    *, needs_primary: bool
) -> Callable[[Dialect, ConnectionPoolEntry, list[Any], dict[str, Any]], DBAPIConnection | None]:
    """Build the function that opens a connection to the right one of the hosts of a URL."""
    import psycopg  # noqa: PLC0415 - as above

    def connect(
        dialect: Dialect, _: ConnectionPoolEntry, arguments: list[Any], options: dict[str, Any]
    ) -> DBAPIConnection | None:
        if needs_primary:
            options["target_session_attrs"] = "read-write"
        elif "," in str(options.get("host", "")):
            # Reads follow the primary, too: a standby lags behind what was acknowledged.
            with suppress(psycopg.OperationalError):
                return dialect.connect(
                    *arguments, **{**options, "target_session_attrs": "read-write"}
                )
        # None: SQLAlchemy connects with these options.
        return None

    return connect


def _build_postgresql_setup(
    statement_seconds: float | None,
) -> Callable[[DBAPIConnection, ConnectionPoolEntry], None]:
    """Build the function that sets up a new connection to PostgreSQL."""

    def set_up(connection: DBAPIConnection, entry: ConnectionPoolEntry) -> None:
        entry.info.update({_IS_NEW: True, _OPENED_AT: time.monotonic()})
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


def _is_read_only(connection: DBAPIConnection) -> bool:
    """Return whether the server accepts no writes, as it last reported by itself."""
    report = cast("psycopg.Connection[object]", connection).info.parameter_status
    return "on" in (report("in_hot_standby"), report("default_transaction_read_only"))
