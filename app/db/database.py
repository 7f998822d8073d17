"""Transactions off the event loop, with failures of the database as `DatabaseUnavailableError`."""

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
_CLOSE_SECONDS = 1.0
_UNLIMITED_WRITERS = 10_000
# The share of the timeout that a call may wait in a queue that never empties: a second by default.
_PATIENCE_SHARE = 0.2


@final
class Database:
    """Runs units of work, each in one transaction, on a bounded number of threads.

    A call that takes longer than the timeout fails, whether the database is slow, locked or hangs.
    """

    def __init__(
        self, database_url: str, *, threads: int, queue: int, timeout_seconds: float = 5.0
    ) -> None:
        """Open no connection yet.

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
        # SQLite has one writer at a time, and polls for its lock without fairness. The threads of
        # this process queue for this semaphore instead.
        self._writers = threading.BoundedSemaphore(
            1 if self._engine.dialect.name == "sqlite" else _UNLIMITED_WRITERS
        )
        self._pool = BoundedPool(
            "database",
            threads=threads,
            queue=queue,
            patience_seconds=timeout_seconds * _PATIENCE_SHARE,
        )

    async def read(self, work: Callable[[Session], T]) -> T:
        """Run `work`, which must not write, and return its result.

        Raises:
            DatabaseUnavailableError: if the database does not answer in time.
            OverloadedError: if too many calls wait already.
        """
        return await self._run_within_timeout(lambda: self.read_blocking(work))

    async def write(self, work: Callable[[Session], T]) -> T:
        """Run `work`, commit, and return its result; `work` may run more than once.

        Raises:
            DatabaseUnavailableError: if the database does not answer in time; whether the work was
                committed is then unknown.
            OverloadedError: if too many calls wait already.
        """
        return await self._run_within_timeout(lambda: self.write_blocking(work))

    def require_capacity(self) -> None:
        """Check that a unit of work would be accepted now.

        Raises:
            DatabaseUnavailableError: if the database has not answered any call within the timeout.
            OverloadedError: if too many calls wait already.
        """
        if self._pool.stalled_seconds > self._timeout_seconds:
            raise self._build_timeout_error()
        self._pool.require_capacity()

    def read_blocking(self, work: Callable[[Session], T]) -> T:
        """Run `work` as `read` does, on the calling thread, which must not run an event loop."""
        return self._transact(work, writing=False)

    def write_blocking(self, work: Callable[[Session], T]) -> T:
        """Run `work` as `write` does, on the calling thread, which must not run an event loop."""
        with self._hold_writer_slot():
            return self._transact(work, writing=True)

    async def check(self) -> None:
        """Read the revision of the schema.

        Raises:
            DatabaseUnavailableError: if the database does not answer, or holds no schema.
        """
        await self.read(
            lambda session: session.scalar(text("SELECT version_num FROM alembic_version"))
        )

    async def truncate_wal(self) -> bool:
        """Copy SQLite's write-ahead log into the file, and truncate it with the deleted rows in it.

        Returns whether that succeeded: an open read transaction prevents it. PostgreSQL recycles
        its log by itself, so for it this does nothing.
        """
        return await self._pool.run(self._truncate_wal)

    def close(self) -> None:
        """Complete running work and close the connections; a hanging call is abandoned."""
        self._pool.close(within_seconds=_CLOSE_SECONDS)
        self._engine.dispose()

    async def _run_within_timeout(self, work: Callable[[], T]) -> T:
        self.require_capacity()
        try:
            async with asyncio.timeout(self._timeout_seconds):
                return await self._pool.run(work)
        except TimeoutError as error:
            raise self._build_timeout_error() from error

    @contextmanager
    def _hold_writer_slot(self) -> Iterator[None]:
        if not self._writers.acquire(timeout=self._timeout_seconds):
            raise self._build_timeout_error()
        try:
            yield
        finally:
            self._writers.release()

    def _build_timeout_error(self) -> DatabaseUnavailableError:
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
                # Two batches with some of the same new events may deadlock; PostgreSQL then aborts
                # one, which has written nothing and can be repeated.
                if state in {_DEADLOCK, _SERIALIZATION_FAILURE} and attempt < _ATTEMPTS:
                    continue
                if isinstance(error, exc.ProgrammingError) and state != _UNDEFINED_TABLE:
                    raise
                raise _build_unavailable_error(error.orig) from error
            except exc.TimeoutError as error:
                raise _build_unavailable_error(error) from error
        raise AssertionError("the last attempt returns or raises")


def _build_unavailable_error(error: BaseException | None) -> DatabaseUnavailableError:
    return DatabaseUnavailableError(
        f"the database must answer, but failed with {type(error).__name__}; try again shortly, and "
        "see the service's log and /health/ready"
    )
