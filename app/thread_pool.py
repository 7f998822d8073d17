"""Bounded thread pools for work that would block the event loop."""

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, NamedTuple, TypeVar, final

from app.errors import OverloadedError

T = TypeVar("T")

_SUSTAINED_SECONDS = 0.25
_AVERAGE_WEIGHT = 0.05


class _Call(NamedTuple):
    work: Callable[[], Any]
    result: "Future[Any]"


@final
class BoundedPool:
    """A few named threads and a bounded number of waiting calls.

    A call beyond the bound fails at once. A burst may fill the queue. A queue that never empties
    only adds its length to the latency of every call: once the threads have been busy without a
    break for a quarter of a second, no more calls wait than `patience_seconds` allow.
    """

    def __init__(
        self, name: str, *, threads: int, queue: int, patience_seconds: float | None = None
    ) -> None:
        """Start no thread before the first call.

        Args:
            name: the name of the threads, and of the pool in errors and metrics.
            threads: calls that run at once.
            queue: most calls that wait for a thread.
            patience_seconds: longest expected wait of a call while the threads are busy without a
                break; None for no limit but `queue`.
        """
        self.name = name
        self._threads = threads
        self._queue = queue
        self._patience_seconds = patience_seconds
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._workers: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._pending = 0
        self._busy_since = self._answered_at = 0.0
        self._seconds_each = 0.0

    @property
    def is_busy(self) -> bool:
        """Whether a new call would wait for a thread."""
        return self._pending >= self._threads

    @property
    def stalled_seconds(self) -> float:
        """For how long every thread has been busy without finishing a call."""
        if not self.is_busy:
            return 0.0
        return time.monotonic() - max(self._busy_since, self._answered_at)

    def require_capacity(self) -> None:
        """Check that `run` would accept a call now.

        Raises:
            OverloadedError: if every thread is busy and too many calls wait.
        """
        most = self._compute_waiting_limit()
        if self._pending >= self._threads + most:
            raise OverloadedError(self.name, most)

    async def run(self, work: Callable[[], T]) -> T:
        """Run `work` on one of the threads, and return its result.

        Raises:
            OverloadedError: if every thread is busy and too many calls wait.
        """
        with self._lock:
            self.require_capacity()
            self._pending += 1
            if self._pending == self._threads:
                self._busy_since = time.monotonic()
            if not self._workers:
                self._start()
        call = _Call(work, Future())
        # On the thread's own future, not the awaiting one: a cancelled caller leaves the work
        # running, and its slot is free only when the thread is.
        call.result.add_done_callback(self._release)
        self._calls.put(call)
        return await asyncio.wrap_future(call.result)

    def close(self, *, within_seconds: float = 10.0) -> None:
        """Complete the running calls, cancel the waiting ones, and end the threads.

        A thread that does not finish in time ends with the process.
        """
        while not self._calls.empty():
            call = self._calls.get()
            if call is not None:
                call.result.cancel()
        for _ in self._workers:
            self._calls.put(None)
        deadline = time.monotonic() + within_seconds
        for worker in self._workers:
            worker.join(max(deadline - time.monotonic(), 0.0))

    def _start(self) -> None:
        # A thread that waits for a hanging database must not delay the end of the process.
        self._workers = [
            threading.Thread(
                target=self._run_calls, name=f"kairos-{self.name}_{number}", daemon=True
            )
            for number in range(self._threads)
        ]
        for worker in self._workers:
            worker.start()

    def _compute_waiting_limit(self) -> int:
        """Return how many calls may wait now."""
        if (
            self._patience_seconds is None
            or self._seconds_each == 0
            or not self.is_busy
            or time.monotonic() - self._busy_since < _SUSTAINED_SECONDS
        ):
            return self._queue
        patient = int(self._patience_seconds * self._threads / self._seconds_each)
        # At least one for each thread, so that no thread runs idle between calls.
        return min(self._queue, max(patient, self._threads))

    def _run_calls(self) -> None:
        while (call := self._calls.get()) is not None:
            # A call whose caller was cancelled is skipped.
            if call.result.set_running_or_notify_cancel():
                self._run(call)
            # It would otherwise keep the result in memory until the next call.
            del call

    def _run(self, call: _Call) -> None:
        began = time.monotonic()
        try:
            result = call.work()
        except BaseException as error:
            self._measure(began)
            call.result.set_exception(error)
        else:
            self._measure(began)
            call.result.set_result(result)

    def _measure(self, began: float) -> None:
        """Update the moving average of the duration of calls."""
        self._answered_at = time.monotonic()
        self._seconds_each += _AVERAGE_WEIGHT * (self._answered_at - began - self._seconds_each)

    def _release(self, _: "Future[Any]") -> None:
        with self._lock:
            self._pending -= 1
