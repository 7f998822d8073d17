"""One check for all probes that wait for it, however many there are."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, final


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
