"""Threads for what would block the event loop, behind a queue that refuses rather than grows."""

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, NamedTuple, TypeVar, final

from app.errors import OverloadedError

T = TypeVar("T")

_STANDING_SECONDS = 0.25
_LATEST_SHARE = 0.05


class _Call(NamedTuple):
    work: Callable[[], Any]
    answer: "Future[Any]"


@final
class BoundedPool:
    """A few named threads and a bounded number of waiting calls.

    A call beyond the bound fails at once: a client that is told to come back does better than one
    whose answer arrives after it has given up. A burst may fill the queue. A queue that stands only
    makes everybody wait for as long as it is: once the threads have been busy without a break for a
    quarter of a second, no more calls wait than `patience_seconds` allow for.
    """

    def __init__(
        self, name: str, *, threads: int, queue: int, patience_seconds: float | None = None
    ) -> None:
        """Threads that are started with the first call.

        Args:
            name: what the threads are called, and what is said to be full.
            threads: how many calls run at once.
            queue: most calls that wait for a thread.
            patience_seconds: longest that a call may be expected to wait in a queue that stands;
                None for as long as there is room.
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
        """Whether a call would have to wait for a thread."""
        return self._pending >= self._threads

    @property
    def stalled_seconds(self) -> float:
        """For how long every thread has been busy without any of them finishing a call."""
        if not self.is_busy:
            return 0.0
        return time.monotonic() - max(self._busy_since, self._answered_at)

    def require_capacity(self) -> None:
        """Refuse a call that `run` would refuse now, before any effort is spent on it.

        Raises:
            OverloadedError: if every thread is busy and too many calls wait.
        """
        most = self._most_waiting()
        if self._pending >= self._threads + most:
            raise OverloadedError(self.name, most)

    async def run(self, work: Callable[[], T]) -> T:
        """The result of `work`, computed on one of the threads.

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
        # The thread's own future, not the awaiting one, says when a place is free again: a caller
        # who goes away leaves the work running.
        call.answer.add_done_callback(self._leave)
        self._calls.put(call)
        return await asyncio.wrap_future(call.answer)

    def close(self, *, within_seconds: float = 10.0) -> None:
        """Finish what runs, drop what waits, and end the threads.

        A thread that does not come back in time is left to the end of the process.
        """
        while not self._calls.empty():
            call = self._calls.get()
            if call is not None:
                call.answer.cancel()
        for _ in self._workers:
            self._calls.put(None)
        deadline = time.monotonic() + within_seconds
        for worker in self._workers:
            worker.join(max(deadline - time.monotonic(), 0.0))

    def _start(self) -> None:
        # A thread that waits for a database that hangs must not hold up the end of the process.
        self._workers = [
            threading.Thread(target=self._work, name=f"kairos-{self.name}_{number}", daemon=True)
            for number in range(self._threads)
        ]
        for worker in self._workers:
            worker.start()

    def _most_waiting(self) -> int:
        """How many calls may wait as things are."""
        if (
            self._patience_seconds is None
            or self._seconds_each == 0
            or not self.is_busy
            or time.monotonic() - self._busy_since < _STANDING_SECONDS
        ):
            return self._queue
        patient = int(self._patience_seconds * self._threads / self._seconds_each)
        # One for each thread, however long it takes: a thread must find its next call.
        return min(self._queue, max(patient, self._threads))

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            # A caller who left the queue is not worked for.
            if call.answer.set_running_or_notify_cancel():
                self._answer(call)
            # It would otherwise hold the answer in memory until the next one.
            del call

    def _answer(self, call: _Call) -> None:
        began = time.monotonic()
        try:
            result = call.work()
        except BaseException as error:
            self._learn(began)
            call.answer.set_exception(error)
        else:
            self._learn(began)
            call.answer.set_result(result)

    def _learn(self, began: float) -> None:
        """Follow how long calls take lately."""
        self._answered_at = time.monotonic()
        self._seconds_each += _LATEST_SHARE * (self._answered_at - began - self._seconds_each)

    def _leave(self, _: "Future[Any]") -> None:
        with self._lock:
            self._pending -= 1
