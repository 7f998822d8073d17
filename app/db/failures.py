"""Failures of the database: the one place that knows what the drivers raise and what it means.

Engines translate by themselves, see `app.db.engine`; code that uses a driver directly does so
inside `translate_failures`. Every other module handles `DatabaseUnavailableError` and its
subclasses. What is none of these is a defect of Kairos, and propagates as the driver raised it.
"""

import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sqlalchemy import exc
from sqlalchemy.engine import ExceptionContext

from app.errors import (
    DatabaseConflictError,
    DatabaseDamagedError,
    DatabaseFileError,
    DatabaseReadOnlyError,
    DatabaseUnavailableError,
    SchemaMissingError,
)

if TYPE_CHECKING:
    import psycopg

_MOST_CHARACTERS = 300

# https://www.postgresql.org/docs/current/errcodes-appendix.html, most specific prefix first; None
# for a defect of Kairos.
_BY_SQLSTATE: tuple[tuple[str, type[DatabaseUnavailableError] | None], ...] = (
    ("25006", DatabaseReadOnlyError),
    ("40001", DatabaseConflictError),  # serialization failure
    ("40P01", DatabaseConflictError),  # deadlock
    ("40003", DatabaseUnavailableError),  # statement completion unknown
    ("42P01", SchemaMissingError),  # undefined table
    ("42703", SchemaMissingError),  # undefined column
    ("3F000", SchemaMissingError),  # undefined schema
    ("42501", DatabaseUnavailableError),  # insufficient privilege: granted by the operator
    ("25P03", DatabaseUnavailableError),  # idle transaction ended by the server
    ("25P04", DatabaseUnavailableError),  # transaction timeout
    ("26000", DatabaseUnavailableError),  # prepared statement lost, as behind some poolers
    ("40002", None),  # transaction undone by an integrity constraint
    ("54", None),  # too complex, too many columns: it fails again
    ("55006", DatabaseUnavailableError),  # object in use
    ("55P03", DatabaseUnavailableError),  # lock not available
    ("XX001", DatabaseDamagedError),  # data corrupted
    ("XX002", DatabaseDamagedError),  # index corrupted
    ("XX", DatabaseUnavailableError),  # internal error, such as a file that cannot be opened
    ("08", DatabaseUnavailableError),  # connection exception
    ("28", DatabaseUnavailableError),  # the server does not admit this role
    ("3D", DatabaseUnavailableError),  # no database of that name
    ("53", DatabaseUnavailableError),  # disk full, out of memory, too many connections
    ("57", DatabaseUnavailableError),  # canceled, shut down, starting up
    ("58", DatabaseUnavailableError),  # I/O error
    ("F0", DatabaseUnavailableError),  # the server's configuration cannot be read
)
# Their connections lead to a server that stops, or that is not the primary (any more), or lack the
# statements that the driver prepared on them.
_ENDS_CONNECTIONS = ("25006", "57P", "08", "25P03", "25P04", "26000")

# https://www.sqlite.org/rescode.html, the primary codes.
_BY_SQLITE_CODE: dict[int, type[DatabaseUnavailableError]] = {
    sqlite3.SQLITE_BUSY: DatabaseUnavailableError,
    sqlite3.SQLITE_CANTOPEN: DatabaseUnavailableError,
    sqlite3.SQLITE_CORRUPT: DatabaseDamagedError,
    sqlite3.SQLITE_FORMAT: DatabaseDamagedError,
    sqlite3.SQLITE_FULL: DatabaseUnavailableError,
    sqlite3.SQLITE_INTERRUPT: DatabaseUnavailableError,
    sqlite3.SQLITE_IOERR: DatabaseFileError,
    sqlite3.SQLITE_LOCKED: DatabaseUnavailableError,
    sqlite3.SQLITE_NOMEM: DatabaseUnavailableError,
    sqlite3.SQLITE_NOTADB: DatabaseDamagedError,
    sqlite3.SQLITE_PERM: DatabaseUnavailableError,
    sqlite3.SQLITE_PROTOCOL: DatabaseUnavailableError,
    sqlite3.SQLITE_READONLY: DatabaseReadOnlyError,
}
# What SQLite reports as the caller's: a statement that is wrong, or a value that does not fit.
_DEFECTS_IN_SQLITE = frozenset(
    {
        sqlite3.SQLITE_ERROR,
        sqlite3.SQLITE_AUTH,
        sqlite3.SQLITE_CONSTRAINT,
        sqlite3.SQLITE_MISMATCH,
        sqlite3.SQLITE_MISUSE,
        sqlite3.SQLITE_RANGE,
        sqlite3.SQLITE_TOOBIG,
    }
)
_MISSING_IN_SQLITE = ("no such table", "no such column")
# Reported without a code of their own: a text that is no UTF-8, a document that is no JSON. Kairos
# stores neither.
_DAMAGED_IN_SQLITE = ("Could not decode to UTF-8", "malformed JSON")
_DAMAGED = (
    "the database must be sound, but its file, a page or a value in it is damaged; see kairos "
    "doctor, and restore a backup with kairos restore"
)
_VALUE_IN_REASON = " with text "
_PRIMARY_CODE = 0xFF
# libpq's reasons to refuse a server with `target_session_attrs=read-write`.
_REFUSED_AS_READ_ONLY = ("session is read-only", "server is in hot standby mode")


def classify(error: BaseException) -> DatabaseUnavailableError | None:
    """Classify an exception of a driver or of a connection pool; None for a defect of Kairos.

    The result's message is fit for responses. What the driver reported is a note of it, for the
    command line and the log.
    """
    if isinstance(error, DatabaseUnavailableError):
        return error
    kind = _find_kind(error)
    if kind is None:
        return None
    failure = kind(_describe(kind, error))
    # The value that cannot be decoded is data of users.
    reason = str(error).partition(_VALUE_IN_REASON)[0].strip().partition("\n")[0]
    reason = reason[:_MOST_CHARACTERS]
    if reason:
        failure.add_note(reason)
    return failure


def build_damage_error(reason: str) -> DatabaseDamagedError:
    """Build the error for damage that Kairos finds itself; the reason is a note of it."""
    failure = DatabaseDamagedError(_DAMAGED)
    failure.add_note(reason)
    return failure


def translate_context(context: ExceptionContext) -> DatabaseUnavailableError | None:
    """Translate the failure of an engine; a listener of SQLAlchemy's event `handle_error`."""
    sqlstate = getattr(context.original_exception, "sqlstate", None) or ""
    if sqlstate.startswith(_ENDS_CONNECTIONS):
        # The pool's other connections lead to the same server: replaced before their next use.
        context.is_disconnect = True
    return classify(context.original_exception)


@contextmanager
def translate_failures() -> Iterator[None]:
    """Translate the failures of a driver that is used without an engine, and of pools.

    Raises:
        DatabaseUnavailableError: if the database does not answer, or answers that it cannot.
    """
    try:
        yield
    except (exc.TimeoutError, sqlite3.Error, *_find_postgresql_error()) as error:
        failure = classify(error)
        if failure is None:
            raise
        raise failure from error


def _find_postgresql_error() -> "tuple[()] | tuple[type[psycopg.Error]]":
    """Find what the driver of PostgreSQL raises; nothing where it was not imported."""
    if "psycopg" not in sys.modules:
        return ()
    import psycopg  # noqa: PLC0415 - the first engine of PostgreSQL imports it

    return (psycopg.Error,)


def _find_kind(error: BaseException) -> type[DatabaseUnavailableError] | None:
    if isinstance(error, sqlite3.Error):
        return _find_sqlite_kind(error)
    if isinstance(error, _find_postgresql_error()):
        return _find_postgresql_kind(error)
    return DatabaseUnavailableError if isinstance(error, exc.TimeoutError) else None


def _find_sqlite_kind(error: sqlite3.Error) -> type[DatabaseUnavailableError] | None:
    # The driver's own errors, such as the use of a closed connection, have no code.
    extended = getattr(error, "sqlite_errorcode", None)
    code = None if extended is None else extended & _PRIMARY_CODE
    if code in {None, sqlite3.SQLITE_ERROR} and str(error).startswith(_DAMAGED_IN_SQLITE):
        return DatabaseDamagedError
    if code == sqlite3.SQLITE_ERROR and str(error).startswith(_MISSING_IN_SQLITE):
        return SchemaMissingError
    if code in _BY_SQLITE_CODE:
        return _BY_SQLITE_CODE[code]
    if code in _DEFECTS_IN_SQLITE:
        return None
    return _find_unknown_kind(error, sqlite3.OperationalError)


def _find_postgresql_kind(error: "psycopg.Error") -> type[DatabaseUnavailableError] | None:
    import psycopg  # noqa: PLC0415 - it raised the error

    if error.sqlstate is not None:
        for prefix, kind in _BY_SQLSTATE:
            if error.sqlstate.startswith(prefix):
                return kind
        return _find_unknown_kind(error, psycopg.OperationalError)
    if any(reason in str(error) for reason in _REFUSED_AS_READ_ONLY):
        return DatabaseReadOnlyError
    # Without a code: no connection, or one that ended.
    return _find_unknown_kind(error, psycopg.OperationalError, psycopg.InterfaceError)


def _find_unknown_kind(
    error: Exception, *operational: type[Exception]
) -> type[DatabaseUnavailableError] | None:
    """Classify by the driver's class what no table lists: operational errors are no defects."""
    return DatabaseUnavailableError if isinstance(error, operational) else None


def _describe(kind: type[DatabaseUnavailableError], error: BaseException) -> str:
    if kind is DatabaseReadOnlyError:
        return (
            "the database must accept writes, but it is read-only, as a standby is during a "
            "failover; try again shortly, and see /health/ready"
        )
    if kind is DatabaseDamagedError:
        return _DAMAGED
    if kind is SchemaMissingError:
        return (
            "the database must hold the schema of this version, but lacks a table or column of "
            "it; run kairos migrate, or correct KAIROS_DATABASE_URL"
        )
    if kind is DatabaseConflictError:
        return (
            "transactions of two callers must not wait for each other, but these did, and this "
            "one was undone; try again"
        )
    return (
        f"the database must answer, but failed with {type(error).__name__}; try again shortly, "
        "and see /health/ready, the service's log or kairos doctor"
    )
