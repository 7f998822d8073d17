"""Transactions off the event loop: in lanes, with deadlines, with failures as `ServiceError`s."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from time import monotonic
from typing import Any, Literal, TypeVar, final

from sqlalchemy import text
from sqlalchemy.orm import Session

from app.db.deadline import Deadline, get_deadline
from app.db.engine import IDENTITY, WRITES, open_engine, parse_url
from app.db.failures import translate_failures
from app.db.gate import ConnectionGate
from app.db.sqlite_file import SqliteFile
from app.errors import (
    DatabaseConflictError,
    DatabaseFileError,
    DatabaseMovedError,
    DatabaseUnavailableError,
)
from app.observability.metrics import Metrics
from app.thread_pool import BoundedPool

T = TypeVar("T")

ReadLane = Literal["reads", "control"]
"""Whose threads read: those of the requests, or those that the process reserves for its own use."""

_ATTEMPTS = 3
_CLOSE_SECONDS = 1.0
_CONTROL_THREADS = 2
_CONTROL_QUEUE = 64
_TRUNCATE_MILLISECONDS = 1000
_UNLIMITED_WRITERS = 10_000
# The share of the timeout that a call may wait in a queue that never empties: a second by default.
_PATIENCE_SHARE = 0.2


@final
class SharedCheck:
    """Runs a check once at a time; who asks while it runs gets the result of that run.

    Anybody may send readiness probes. Were each one to check the database itself, a hundred
    connections would fill the queue that the process needs for its keys, its items and its clock.
    """

    def __init__(self, check: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._check = check
        self._running: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Await the check that runs, or begin one; its errors are those of the check."""
        if self._running is None:
            self._running = asyncio.create_task(self._check())
            self._running.add_done_callback(self._end)
        # A probe that is given up must not cancel the check for the others.
        await asyncio.shield(self._running)

    def _end(self, running: "asyncio.Task[None]") -> None:
        self._running = None
        # A failure is marked as seen, even if every probe was given up.
        if not running.cancelled():
            running.exception()


@final
class Database:
    """Runs units of work, each in one transaction, on a bounded number of threads.

    Reads, writes, and the control of the process itself (its probes, its keys) have threads, queues
    and connections of their own, called lanes: slow reads delay neither writes nor probes.

    A call that takes longer than the timeout fails, whether the database is slow, locked or hangs.
    The statement that runs is then cancelled, and its thread takes the next call.
    """

    def __init__(
        self,
        database_url: str,
        *,
        threads: int,
        queue: int,
        timeout_seconds: float = 5.0,
        write_threads: int = 1,
        metrics: Metrics | None = None,
    ) -> None:
        """Open no connection yet.

        Args:
            threads: units of work that read at once, and connections.
            queue: most units of work that wait for a thread of a lane.
            timeout_seconds: longest that a caller waits, in the queue and for the database.
            write_threads: units of work that write at once, and connections; SQLite has one.
            metrics: receives the waiting times of the lanes.
        """
        url = parse_url(database_url)
        is_sqlite = url.get_backend_name() == "sqlite"
        writers = 1 if is_sqlite else write_threads
        self._file = SqliteFile(Path(str(url.database)), may_create=False) if is_sqlite else None
        self._reading = open_engine(
            database_url,
            connections=threads + _CONTROL_THREADS,
            statement_seconds=timeout_seconds,
            file=self._file,
        )
        self._writing = open_engine(
            database_url,
            connections=writers,
            statement_seconds=timeout_seconds,
            needs_primary=True,
            file=self._file,
        )
        self._reading_check = SharedCheck(lambda: self.read(_read_revision, lane="control"))
        self._writing_check = SharedCheck(
            lambda: self._run_within_timeout("control", self._try_writing)
        )
        self._gate = ConnectionGate()
        self._timeout_seconds = timeout_seconds
        self._metrics = metrics
        # SQLite has one writer at a time, and polls for its lock without fairness. The threads of
        # this process, also those outside the lanes, queue for this semaphore instead.
        self._writers = threading.BoundedSemaphore(1 if is_sqlite else _UNLIMITED_WRITERS)
        self._lanes = {
            lane: BoundedPool(
                f"database_{lane}",
                threads=size,
                queue=waiting,
                patience_seconds=timeout_seconds * _PATIENCE_SHARE,
            )
            for lane, size, waiting in (
                ("reads", threads, queue),
                ("writes", writers, queue),
                ("control", _CONTROL_THREADS, _CONTROL_QUEUE),
            )
        }

    async def read(self, work: Callable[[Session], T], *, lane: ReadLane = "reads") -> T:
        """Run `work`, which must not write, and return its result.

        Raises:
            DatabaseUnavailableError: if the database does not answer in time.
            OverloadedError: if too many calls wait already.
        """
        return await self._run_within_timeout(lane, lambda: self._transact_read(work))

    async def write(self, work: Callable[[Session], T]) -> T:
        """Run `work`, commit, and return its result; `work` may run more than once.

        Raises:
            DatabaseUnavailableError: if the database does not answer in time; whether the work was
                committed is then unknown.
            OverloadedError: if too many calls wait already.
        """
        return await self._run_within_timeout("writes", lambda: self._transact_write(work))

    def require_write_capacity(self) -> None:
        """Check that a unit of work that writes would be accepted now.

        Raises:
            DatabaseUnavailableError: if the database has not answered any such call within the
                timeout.
            OverloadedError: if too many calls wait already.
        """
        self._require_capacity("writes")

    def read_blocking(self, work: Callable[[Session], T]) -> T:
        """Run `work` as `read` does, on the calling thread, which must not run an event loop."""
        with Deadline(self._timeout_seconds).apply():
            return self._transact_read(work)

    def write_blocking(self, work: Callable[[Session], T]) -> T:
        """Run `work` as `write` does, on the calling thread, which must not run an event loop."""
        with Deadline(self._timeout_seconds).apply():
            return self._transact_write(work)

    async def check_reading(self) -> None:
        """Read the revision of the schema; calls at the same time share one read.

        Raises:
            DatabaseUnavailableError: if the database does not answer, or holds no schema.
        """
        await self._reading_check.run()

    async def check_writing(self) -> None:
        """Open a transaction where writes go, without writing; calls at the same time share one.

        Raises:
            DatabaseUnavailableError: if no server accepts writes, the file is not where it was, or
                its disk is full.
        """
        await self._writing_check.run()

    async def truncate_wal(self) -> bool:
        """Copy SQLite's write-ahead log into the file, and truncate it with the deleted rows in it.

        Returns whether that succeeded: an open read transaction prevents it. PostgreSQL recycles
        its log by itself, so for it this does nothing.
        """
        try:
            return await self._run_within_timeout("writes", self._truncate_wal)
        except DatabaseUnavailableError:
            return False

    def close(self) -> None:
        """Complete running work and close the connections; a hanging call is abandoned."""
        ends_at = monotonic() + _CLOSE_SECONDS
        for lane in self._lanes.values():
            lane.close(within_seconds=max(0.0, ends_at - monotonic()))
        self._dispose()

    def _dispose(self) -> None:
        self._reading.dispose()
        self._writing.dispose()

    async def _run_within_timeout(self, lane: str, work: Callable[[], T]) -> T:
        self._require_capacity(lane)
        deadline = Deadline(self._timeout_seconds)

        def run() -> T:
            if self._metrics is not None:
                waited = self._timeout_seconds - deadline.remaining_seconds
                self._metrics.database_queue_seconds.labels(lane).observe(waited)
            with deadline.apply():
                return work()

        in_progress = (
            nullcontext()
            if self._metrics is None
            else self._metrics.database_in_progress.labels(lane).track_inprogress()
        )
        try:
            with in_progress:
                async with asyncio.timeout(self._timeout_seconds):
                    return await self._lanes[lane].run(run)
        except TimeoutError as error:
            raise deadline.build_error() from error
        finally:
            # What still runs, because the caller was cancelled or does not wait any longer.
            deadline.cancel()

    def _require_capacity(self, lane: str) -> None:
        pool = self._lanes[lane]
        if pool.stalled_seconds > self._timeout_seconds:
            raise Deadline(self._timeout_seconds).build_error()
        pool.require_capacity()

    def _transact_read(self, work: Callable[[Session], T]) -> T:
        def attempt() -> T:
            with (
                translate_failures(),
                Session(self._reading, expire_on_commit=False) as session,
                session.begin(),
            ):
                return work(session)

        return self._repeat(attempt)

    def _transact_write(self, work: Callable[[Session], T]) -> T:
        return self._repeat(lambda: self._attempt_write(work))

    def _repeat(self, attempt: Callable[[], T]) -> T:
        """Return the result of an attempt, the next one if it failed for a passing reason."""
        deadline = get_deadline()
        assert deadline is not None
        for _ in range(1, _ATTEMPTS):
            try:
                with self._gate.use(deadline):
                    return attempt()
            except DatabaseConflictError:
                # Such as a deadlock with a batch of the release before, which sorts no events.
                continue
            except (DatabaseMovedError, DatabaseFileError):
                # All connections, before another is opened: the last one that SQLite closes saves
                # what is left of a log that was deleted, and no two may use different logs. While
                # one is open, SQLite reads the next log by its index of the deleted one, and fails.
                self._gate.close(self._dispose, deadline)
        with self._gate.use(deadline):
            return attempt()

    def _attempt_write(self, work: Callable[[Session], T]) -> T:
        deadline = get_deadline()
        assert deadline is not None
        engine = self._writing.execution_options(**WRITES)
        with (
            translate_failures(),
            self._hold_writer_slot(deadline),
            Session(engine, expire_on_commit=False) as session,
        ):
            with session.begin():
                identity = session.connection().info.get(IDENTITY)
                result = work(session)
                session.flush()
                # Its caller has got an error already.
                deadline.require_time()
            if self._file is not None and identity is not None:
                self._file.require(identity)
        return result

    @contextmanager
    def _hold_writer_slot(self, deadline: Deadline) -> Iterator[None]:
        if not self._writers.acquire(timeout=deadline.remaining_seconds):
            raise deadline.build_error()
        try:
            yield
        finally:
            self._writers.release()

    def _try_writing(self) -> None:
        def connect() -> None:
            # A connection is handed out only if it leads to where writes go.
            with translate_failures(), self._writing.connect():
                pass

        self._repeat(connect)
        if self._file is not None:
            self._file.require_room()

    def _truncate_wal(self) -> bool:
        if self._file is None:
            return True
        deadline = get_deadline()
        assert deadline is not None
        with (
            self._gate.use(deadline),
            translate_failures(),
            closing(self._writing.raw_connection()) as connection,
        ):
            cursor = connection.cursor()
            # No event can be stored while it waits for readers to end.
            cursor.execute(f"PRAGMA busy_timeout={_TRUNCATE_MILLISECONDS}")
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            is_busy, *_ = cursor.fetchone() or (1,)
        return not is_busy


def _read_revision(session: Session) -> None:
    session.execute(text("SELECT version_num FROM alembic_version"))
