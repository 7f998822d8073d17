"""A limit on requests that read much, so that others keep the processor and the interpreter."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import final

from app.errors import OverloadedError
from app.inference.requester import requester

_NAME = "overviews"


@final
class OverviewGate:
    """Lets one overview be read at a time: a list of users, a page of items, a model's description.

    Each takes a processor for up to a tenth of a second, on a large database, and the interpreter
    for much of it. Many at once would take both from recommendations and events.
    """

    def __init__(self, *, queue: int = 64, share: int = 8, patience_seconds: float) -> None:
        """Let the first one pass at once.

        Args:
            queue: most requests that wait for their turn.
            share: most of one caller that do.
            patience_seconds: longest that one waits.
        """
        self._queue = queue
        self._patience_seconds = patience_seconds
        self._turn = asyncio.Semaphore(1)
        self._share = share
        self._waiting: Counter[str] = Counter()

    @asynccontextmanager
    async def take_turn(self) -> AsyncIterator[None]:
        """Wait until no other overview is read; in the block none is.

        Raises:
            OverloadedError: if too many requests wait already, or this one has waited too long.
        """
        caller = requester.get().caller
        if self._waiting.total() >= self._queue:
            raise self._build_error(f"at most {self._queue} overviews may wait, and that many do")
        if self._waiting[caller] >= self._share:
            raise self._build_error(
                f"at most {self._share} overviews of one caller may wait, and that many do"
            )
        self._waiting[caller] += 1
        try:
            async with asyncio.timeout(self._patience_seconds):
                await self._turn.acquire()
        except TimeoutError as error:
            raise self._build_error(
                f"an overview may wait {self._patience_seconds:g} seconds for those before it, but "
                "this one has waited longer"
            ) from error
        finally:
            self._waiting[caller] -= 1
            if not self._waiting[caller]:
                del self._waiting[caller]
        try:
            yield
        finally:
            self._turn.release()

    def _build_error(self, rule: str) -> OverloadedError:
        return OverloadedError(
            _NAME, self._queue, f"{rule}; try again shortly, or run more processes"
        )
