"""Threads for what would block the event loop, behind a queue that refuses rather than grows."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar, final

from app.errors import OverloadedError

T = TypeVar("T")


@final
class BoundedPool:
    """A few named threads and a bounded number of waiting calls.

    A call beyond the bound fails at once: a client that is told to come back does better than one
    whose answer arrives after it has given up.
    """

    def __init__(self, name: str, *, threads: int, queue: int) -> None:
        self.name = name
        self._threads = threads
        self._queue = queue
        self._pending = 0
        self._lock = threading.Lock()
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix=f"kairos-{name}")

    @property
    def is_busy(self) -> bool:
        """Whether a call would have to wait for a thread."""
        return self._pending >= self._threads

    async def run(self, work: Callable[[], T]) -> T:
        """The result of `work`, computed on one of the threads.

        Raises:
            OverloadedError: if every thread is busy and the queue is full.
        """
        with self._lock:
            if self._pending >= self._threads + self._queue:
                raise OverloadedError(self.name, self._queue)
            self._pending += 1
        future = self._executor.submit(work)
        # The thread's own future, not the awaiting one, says when a place is free again: a caller
        # who goes away leaves the work running.
        future.add_done_callback(self._leave)
        return await asyncio.wrap_future(future)

    def close(self) -> None:
        """Finish what runs, drop what waits, and end the threads."""
        self._executor.shutdown(wait=True, cancel_futures=True)

    def _leave(self, _: "Future[T]") -> None:
        with self._lock:
            self._pending -= 1
