"""Transactions off the event loop, with failures of the database told apart from ours."""

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar, final

from sqlalchemy import exc, text
from sqlalchemy.orm import Session

from app.db.engine import WRITES, open_engine
from app.errors import DatabaseUnavailableError
from app.thread_pool import BoundedPool

T = TypeVar("T")

_ATTEMPTS = 3
_SERIALIZATION_FAILURE, _DEADLOCK = "40001", "40P01"
_UNDEFINED_TABLE = "42P01"
_FAREWELL_SECONDS = 1.0
_NO_TURNS = 10_000
# A queue that stands makes everybody wait for as long as it is: it is kept to a second by default.
_PATIENT_SHARE = 0.2


@final
class Database:
    """Runs units of work, each in one transaction, on a bounded number of threads.

    Nobody waits for it for ever: a database that hangs is one that does not answer.
    """

    def __init__(
        self, database_url: str, *, threads: int, queue: int, timeout_seconds: float = 5.0
    ) -> None:
        """Open nothing yet.

        Args:
            threads: units of work that run at once, and connections.
            queue: most units of work that wait for a thread.
            timeout_seconds: longest that a caller waits, in the queue and for the database.
        """
        self._engine = open_engine(
            database_url, connections=threads, statement_seconds=timeout_seconds
        )
        self._timeout_seconds = timeout_seconds
        self._writing = self._engine.execution_options(**WRITES)
        # SQLite has one writer at a time, and whoever finds the file locked looks again every now
        # and then, at its own luck. The threads of this process wait in turn.
        self._turns = threading.BoundedSemaphore(
            1 if self._engine.dialect.name == "sqlite" else _NO_TURNS
        )
        self._pool = BoundedPool(
            "database",
            threads=threads,
            queue=queue,
            patience_seconds=timeout_seconds * _PATIENT_SHARE,
        )

    async def read(self, work: Callable[[Session], T]) -> T:
        """The result of `work`, which must not write.

        Raises:
            DatabaseUnavailableError: if the database does not answer in time.
            OverloadedError: if too many calls wait already.
        """
        return await self._in_time(lambda: self.read_blocking(work))

    async def write(self, work: Callable[[Session], T]) -> T:
        """The result of `work`, once everything it wrote is committed; it may run more than once.

        Raises:
            DatabaseUnavailableError: if the database does not answer in time; then nobody knows
                whether it was committed.
            OverloadedError: if too many calls wait already.
        """
        return await self._in_time(lambda: self.write_blocking(work))

    def require_capacity(self) -> None:
        """Refuse a unit of work that would be refused now, before any effort is spent on it.

        Raises:
            DatabaseUnavailableError: if the database has not answered anybody for a while.
            OverloadedError: if too many calls wait already.
        """
        if self._pool.stalled_seconds > self._timeout_seconds:
            raise self._late()
        self._pool.require_capacity()

    def read_blocking(self, work: Callable[[Session], T]) -> T:
        """`read` on the calling thread, which is not that of an event loop."""
        return self._transact(work, writing=False)

    def write_blocking(self, work: Callable[[Session], T]) -> T:
        """`write` on the calling thread, which is not that of an event loop."""
        with self._turn():
            return self._transact(work, writing=True)

    async def check(self) -> None:
        """Ask the database for its schema's revision.

        Raises:
            DatabaseUnavailableError: if it does not answer, or holds no schema.
        """
        await self.read(
            lambda session: session.scalar(text("SELECT version_num FROM alembic_version"))
        )

    async def truncate_wal(self) -> bool:
        """Have SQLite take its write-ahead log into the file, and empty it of what was deleted.

        Answers whether it could: a reader that does not end prevents it. PostgreSQL recycles its
        log by itself.
        """
        return await self._pool.run(self._truncate_wal)

    def close(self) -> None:
        """Finish running work and close the connections; what hangs is left behind."""
        self._pool.close(within_seconds=_FAREWELL_SECONDS)
        self._engine.dispose()

    async def _in_time(self, work: Callable[[], T]) -> T:
        self.require_capacity()
        try:
            async with asyncio.timeout(self._timeout_seconds):
                return await self._pool.run(work)
        except TimeoutError as error:
            raise self._late() from error

    @contextmanager
    def _turn(self) -> Iterator[None]:
        if not self._turns.acquire(timeout=self._timeout_seconds):
            raise self._late()
        try:
            yield
        finally:
            self._turns.release()

    def _late(self) -> DatabaseUnavailableError:
        return DatabaseUnavailableError(
            f"the database must answer within {self._timeout_seconds:g} seconds, but has not; try "
            "again shortly, and see /health/ready"
        )

    def _truncate_wal(self) -> bool:
        if self._engine.dialect.name != "sqlite":
            return True
        connection = self._engine.raw_connection()
        try:
            cursor = connection.cursor()
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            is_busy, *_ = cursor.fetchone() or (1,)
        except sqlite3.OperationalError:
            return False
        finally:
            connection.close()
        return not is_busy

    def _transact(self, work: Callable[[Session], T], *, writing: bool) -> T:
        engine = self._writing if writing else self._engine
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                with Session(engine, expire_on_commit=False) as session, session.begin():
                    return work(session)
            except (exc.OperationalError, exc.InterfaceError, exc.ProgrammingError) as error:
                state = getattr(error.orig, "sqlstate", None)
                # Two batches that hold some of the same new events may wait for each other;
                # PostgreSQL then breaks one, which has written nothing and may go again.
                if state in {_DEADLOCK, _SERIALIZATION_FAILURE} and attempt < _ATTEMPTS:
                    continue
                if isinstance(error, exc.ProgrammingError) and state != _UNDEFINED_TABLE:
                    raise
                raise _unavailable(error.orig) from error
            except exc.TimeoutError as error:
                raise _unavailable(error) from error
        raise AssertionError("the last attempt returns or raises")


def _unavailable(error: BaseException | None) -> DatabaseUnavailableError:
    return DatabaseUnavailableError(
        f"the database must answer, but said {type(error).__name__}; try again shortly, and see "
        "the service's log and /health/ready"
    )
