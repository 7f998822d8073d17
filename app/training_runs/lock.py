"""A lock between machines that share a PostgreSQL database."""

from types import TracebackType
from typing import Self, final

from sqlalchemy import Connection, NullPool, text

from app.db.engine import open_engine
from app.errors import DatabaseUnavailableError

_KEY = int.from_bytes(b"kairos")
_LONGEST_NAME = 63
"""Characters that PostgreSQL keeps of a name."""


@final
class AdvisoryLock:
    """A PostgreSQL advisory lock, released when its connection ends, in whatever way.

    The connection must reach the server itself: a pooler that shares connections between clients
    would share the lock, too.
    """

    def __init__(self, database_url: str, holder: str) -> None:
        """Connect.

        Args:
            holder: the name under which other processes see the holder of the lock.

        Raises:
            DatabaseUnavailableError: if the database does not answer.
        """
        self._engine = open_engine(database_url, poolclass=NullPool)
        try:
            self._connection: Connection = self._engine.connect().execution_options(
                isolation_level="AUTOCOMMIT"
            )
            self._query("SELECT set_config('application_name', :it, false)", holder[:_LONGEST_NAME])
        except DatabaseUnavailableError as error:
            raise _build_unavailable_error(error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        self._connection.close()
        self._engine.dispose()

    def take(self) -> bool:
        """Try to take the lock; return whether that succeeded."""
        return bool(self._query("SELECT pg_try_advisory_lock(:it)", _KEY))

    def read_holder(self) -> str:
        """Read who holds the lock and since when it is connected, if the server shows it."""
        name = self._query(
            "SELECT application_name || ', connected since ' || "
            "to_char(backend_start AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') "
            "FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE locktype = 'advisory' AND "
            "granted AND (classid::bigint << 32) + objid::bigint = :it",
            _KEY,
        )
        return str(name or "another process")

    def require(self) -> None:
        """Check that the connection, and with it the lock, still exists.

        Raises:
            DatabaseUnavailableError: if it does not.
        """
        try:
            self._query("SELECT :it", 1)
        except DatabaseUnavailableError as error:
            raise _build_unavailable_error(error) from error

    def _query(self, statement: str, it: str | int) -> object:
        return self._connection.scalar(text(statement), {"it": it})


def _build_unavailable_error(error: DatabaseUnavailableError) -> DatabaseUnavailableError:
    return DatabaseUnavailableError(
        "retraining holds a lock of the database, which failed with "
        f"{type(error.__cause__).__name__}; run it again once the database answers"
    )
