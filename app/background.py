"""Periodic tasks of a process: repeated after every failure, which is logged and counted."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import final

import structlog

from app.errors import DatabaseUnavailableError, OverloadedError, StoreUnavailableError
from app.observability.metrics import Metrics
from model.errors import format_error

Step = Callable[[], Awaitable[object]]
"""One run of a task; it raises if the run failed."""

_FAILING_AFTER = 3
_LONGEST_PAUSE_SECONDS = 30.0
"""Between a failed run and the next."""
_OUTAGES = (DatabaseUnavailableError, OverloadedError, StoreUnavailableError)
"""Failures of something else, which end by themselves: they are no defects of the task."""
_LONGEST_OUTAGE_SECONDS = 60.0
"""A longer one may be of the task itself: what it does may never fit into its deadline."""

_log = structlog.get_logger()


@dataclass(slots=True)
class _Task:
    """A task, and the outcomes of its last runs.

    Attributes:
        is_needed: whether the process may not receive requests before the first successful run.
        failures: runs that failed since the last successful one, outages apart.
        waiting_since: when the first run met the outage that lasts, in seconds; None if none.
        is_overloaded: whether the last run was refused because too many others wait.
        has_failed_long: whether the outage has lasted for too long.
    """

    name: str
    interval_seconds: float
    is_essential: bool
    is_needed: bool = False
    failures: int = 0
    waiting_since: float | None = None
    is_overloaded: bool = False
    has_failed_long: bool = False

    @property
    def is_failing(self) -> bool:
        return self.failures >= _FAILING_AFTER or self.has_failed_long or self.is_missing

    @property
    def is_missing(self) -> bool:
        """Whether the process lacks what the first run was to bring."""
        return self.is_needed and (self.failures > 0 or self.waiting_since is not None)

    @property
    def is_blocking(self) -> bool:
        """Whether the process must not receive requests if the task is failing."""
        # The requests of an overloaded process would overload the others, too.
        return self.is_essential and (not self.is_overloaded or self.is_missing)

    @property
    def pause_seconds(self) -> float:
        """The pause before the next run: twice as long after each failure, up to a limit."""
        if not self.failures and self.waiting_since is None:
            return self.interval_seconds
        doubled = self.interval_seconds * 2.0 ** min(self.failures, 30)
        return min(doubled, _LONGEST_PAUSE_SECONDS)


@final
class TaskSupervisor:
    """Runs the periodic tasks of a process; none ends before it is cancelled.

    An exception ends one run of a task, not the task. A task without a successful run in its last
    three is failing: the readiness probe names it, and fails if the task is essential. Outages of
    something else do not count as failures in their first minute. A task that the process needs
    once before it serves is failing until its first run succeeds.
    """

    def __init__(self, metrics: Metrics, clock: Callable[[], float] = time.monotonic) -> None:
        """Run nothing yet.

        Args:
            clock: the seconds by which outages are measured.
        """
        self._metrics = metrics
        self._clock = clock
        self._tasks: list[_Task] = []

    def list_failing(self, *, essential: bool) -> list[str]:
        """List the names of the failing tasks that are essential, or of those that are not.

        An essential task that is refused because the process is overloaded is among the latter.
        """
        return [
            task.name for task in self._tasks if task.is_failing and task.is_blocking == essential
        ]

    @asynccontextmanager
    async def run_every(
        self,
        interval_seconds: float,
        name: str,
        step: Step,
        *,
        is_essential: bool = True,
        is_awaited: bool = False,
    ) -> AsyncIterator[None]:
        """Run a task at an interval during the block, for the first time at its beginning.

        Args:
            is_essential: whether a process without it must not receive requests.
            is_awaited: whether the block begins after the first run.
        """
        task = self._add(name, interval_seconds, is_essential=is_essential, is_needed=is_awaited)
        if is_awaited:
            await self._attempt(task, step)

        async def repeat() -> None:
            if is_awaited:
                await asyncio.sleep(task.pause_seconds)
            while True:
                await self._attempt(task, step)
                await asyncio.sleep(task.pause_seconds)

        async with _run(repeat(), name):
            yield

    @asynccontextmanager
    async def run_until_done(
        self, interval_seconds: float, name: str, step: Step
    ) -> AsyncIterator[None]:
        """Run a task before the block, and in its background until one run succeeds.

        It is essential: the process is not ready before it is done.
        """
        task = self._add(name, interval_seconds, is_essential=True, is_needed=True)
        is_done = await self._attempt(task, step)

        async def repeat() -> None:
            while not is_done and not await self._wait_and_attempt(task, step):
                pass

        async with _run(repeat(), name):
            yield

    def _add(
        self, name: str, interval_seconds: float, *, is_essential: bool, is_needed: bool = False
    ) -> _Task:
        task = _Task(name, interval_seconds, is_essential, is_needed)
        self._tasks.append(task)
        # `increase()` ignores the first value of a new label.
        self._metrics.background_task_failures.labels(name)
        return task

    async def _wait_and_attempt(self, task: _Task, step: Step) -> bool:
        await asyncio.sleep(task.pause_seconds)
        return await self._attempt(task, step)

    async def _attempt(self, task: _Task, step: Step) -> bool:
        """Run a task once; return whether that succeeded."""
        try:
            await step()
        except _OUTAGES as error:
            self._note_outage(task, error)
            return False
        except (Exception, asyncio.CancelledError):
            current = asyncio.current_task()
            if current is not None and current.cancelling():
                raise
            task.failures += 1
            task.is_overloaded = False
            self._metrics.background_task_failures.labels(task.name).inc()
            _log.exception("background_task_failed", task=task.name, failures=task.failures)
            return False
        if task.waiting_since is not None or task.failures:
            _log.info("background_task_recovered", task=task.name)
        task.failures, task.waiting_since = 0, None
        task.has_failed_long = task.is_overloaded = task.is_needed = False
        return True

    def _note_outage(self, task: _Task, error: Exception) -> None:
        """Log the beginning of an outage; count the runs of one that does not end."""
        now = self._clock()
        task.is_overloaded = isinstance(error, OverloadedError)
        if task.waiting_since is None:
            task.waiting_since = now
            _log.warning("background_task_waiting", task=task.name, error=format_error(error))
        if now - task.waiting_since < _LONGEST_OUTAGE_SECONDS:
            return
        # Not in `failures`, on which the pauses depend: the end of an outage is to be noticed soon.
        self._metrics.background_task_failures.labels(task.name).inc()
        if not task.has_failed_long:
            task.has_failed_long = True
            _log.error("background_task_keeps_waiting", task=task.name, error=format_error(error))


@asynccontextmanager
async def _run(work: Coroutine[None, None, None], name: str) -> AsyncIterator[None]:
    """Run `work` as a task during the block, and cancel it at the end."""
    running = asyncio.create_task(work, name=name)
    try:
        yield
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
