"""A lock that machines share by sharing a PostgreSQL database."""

from types import TracebackType
from typing import Self, final

from sqlalchemy import Connection, NullPool, text
from sqlalchemy.exc import DBAPIError

from app.db.engine import open_engine
from app.errors import DatabaseUnavailableError

_KEY = int.from_bytes(b"kairos")
_LONGEST_NAME = 63
"""Characters that PostgreSQL keeps of a name."""


@final
class AdvisoryLock:
    """One holder at a time; PostgreSQL lets go of it when its connection ends, however that ends.

    The connection must reach the server itself: a pooler that gives it to others between two
    statements gives them the lock with it.
    """

    def __init__(self, database_url: str, holder: str) -> None:
        """Connect.

        Args:
            holder: what others are told of who has it.

        Raises:
            DatabaseUnavailableError: if the database does not answer.
        """
        self._engine = open_engine(database_url, poolclass=NullPool)
        try:
            self._connection: Connection = self._engine.connect().execution_options(
                isolation_level="AUTOCOMMIT"
            )
            self._ask("SELECT set_config('application_name', :it, false)", holder[:_LONGEST_NAME])
        except DBAPIError as error:
            raise _away(error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        self._connection.close()
        self._engine.dispose()

    def take(self) -> bool:
        """Whether the lock is ours now."""
        return bool(self._ask("SELECT pg_try_advisory_lock(:it)", _KEY))

    def holder(self) -> str:
        """Who has it, and since when, as far as the server may tell."""
        told = self._ask(
            "SELECT application_name || ', connected since ' || "
            "to_char(backend_start AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') "
            "FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE locktype = 'advisory' AND "
            "granted AND (classid::bigint << 32) + objid::bigint = :it",
            _KEY,
        )
        return str(told or "another process")

    def require(self) -> None:
        """Make sure that the lock is still ours.

        Raises:
            DatabaseUnavailableError: if the connection that held it is gone.
        """
        try:
            self._ask("SELECT :it", 1)
        except DBAPIError as error:
            raise _away(error) from error

    def _ask(self, statement: str, it: str | int) -> object:
        return self._connection.scalar(text(statement), {"it": it})


def _away(error: DBAPIError) -> DatabaseUnavailableError:
    return DatabaseUnavailableError(
        f"retraining holds a lock of the database, which said: {type(error.orig).__name__}; run it "
        "again once the database answers"
    )
