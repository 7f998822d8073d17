"""A limit on requests that read much, so that others keep the processor and the interpreter."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import final

from app.errors import OverloadedError

_NAME = "overviews"


@final
class OverviewGate:
    """Lets one overview be read at a time: a list of users, a page of items, a model's description.

    Each takes a processor for up to a tenth of a second, on a large database, and the interpreter
    for much of it. Many at once would take both from recommendations and events.
    """

    def __init__(self, *, queue: int = 64, patience_seconds: float) -> None:
        """Let the first one pass at once.

        Args:
            queue: most requests that wait for their turn.
            patience_seconds: longest that one waits.
        """
        self._queue = queue
        self._patience_seconds = patience_seconds
        self._turn = asyncio.Semaphore(1)
        self._waiting = 0

    @asynccontextmanager
    async def take_turn(self) -> AsyncIterator[None]:
        """Wait until no other overview is read; in the block none is.

        Raises:
            OverloadedError: if too many requests wait already, or this one has waited too long.
        """
        if self._waiting >= self._queue:
            raise self._build_error(f"at most {self._queue} overviews may wait, and that many do")
        self._waiting += 1
        try:
            async with asyncio.timeout(self._patience_seconds):
                await self._turn.acquire()
        except TimeoutError as error:
            raise self._build_error(
                f"an overview may wait {self._patience_seconds:g} seconds for those before it, but "
                "this one has waited longer"
            ) from error
        finally:
            self._waiting -= 1
        try:
            yield
        finally:
            self._turn.release()

    def _build_error(self, rule: str) -> OverloadedError:
        return OverloadedError(
            _NAME, self._queue, f"{rule}; try again shortly, or run more processes"
        )
