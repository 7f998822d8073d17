"""Periodic tasks of a process: repeated after every failure, which is logged and counted."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import final

import structlog

from app.errors import DatabaseUnavailableError, OverloadedError, StoreUnavailableError
from app.observability.metrics import Metrics

Step = Callable[[], Awaitable[object]]
"""One run of a task; it raises if the run failed."""

_FAILING_AFTER = 3
_LONGEST_PAUSE_SECONDS = 30.0
"""Between a failed run and the next."""
_OUTAGES = (DatabaseUnavailableError, OverloadedError, StoreUnavailableError)
"""Failures of something else, which end by themselves: they are no defects of the task."""

_log = structlog.get_logger()


@dataclass(slots=True)
class _Task:
    name: str
    interval_seconds: float
    is_essential: bool
    must_finish: bool = False
    failures: int = 0
    is_waiting: bool = False

    @property
    def is_failing(self) -> bool:
        # What the process must do before it serves is missing from the first failure on, an outage
        # included: what failed may be back before the next run.
        is_missing = self.must_finish and (self.failures > 0 or self.is_waiting)
        return is_missing or self.failures >= _FAILING_AFTER

    @property
    def pause_seconds(self) -> float:
        """The pause before the next run: twice as long after each failure, up to a limit."""
        if not self.failures and not self.is_waiting:
            return self.interval_seconds
        doubled = self.interval_seconds * 2.0 ** min(self.failures, 30)
        return min(doubled, _LONGEST_PAUSE_SECONDS)


@final
class TaskSupervisor:
    """Runs the periodic tasks of a process; none ends before it is cancelled.

    An exception ends one run of a task, not the task. A task without a successful run in its last
    three is failing, and so is one that must succeed once and has not: the readiness probe names
    it, and fails if the task is essential.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._tasks: list[_Task] = []

    def list_failing(self, *, essential: bool) -> list[str]:
        """List the names of the failing tasks that are essential, or of those that are not."""
        return [
            task.name for task in self._tasks if task.is_failing and task.is_essential == essential
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
        task = self._add(name, interval_seconds, is_essential=is_essential)
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
        task = self._add(name, interval_seconds, is_essential=True, must_finish=True)
        is_done = await self._attempt(task, step)

        async def repeat() -> None:
            while not is_done and not await self._wait_and_attempt(task, step):
                pass

        async with _run(repeat(), name):
            yield

    def _add(
        self, name: str, interval_seconds: float, *, is_essential: bool, must_finish: bool = False
    ) -> _Task:
        task = _Task(name, interval_seconds, is_essential, must_finish)
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
            if not task.is_waiting:
                _log.warning("background_task_waiting", task=task.name, error=str(error))
            task.is_waiting = True
            return False
        except (Exception, asyncio.CancelledError):
            current = asyncio.current_task()
            if current is not None and current.cancelling():
                raise
            task.failures += 1
            self._metrics.background_task_failures.labels(task.name).inc()
            _log.exception("background_task_failed", task=task.name, failures=task.failures)
            return False
        if task.is_waiting or task.failures:
            _log.info("background_task_recovered", task=task.name)
        task.failures, task.is_waiting = 0, False
        return True


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
