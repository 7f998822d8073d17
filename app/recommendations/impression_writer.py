"""Writing down what was shown, a batch at a time, and forgetting it when it is old."""

import asyncio
from contextlib import suppress
from typing import final

import structlog

from app.context import AppContext
from app.errors import DatabaseUnavailableError, OverloadedError
from app.recommendations.repository import RecommendationRepository
from app.serving.impressions import Impression
from model.clock import MICROSECONDS_PER_DAY, now

_BATCH = 500
_PAUSE_SECONDS = 0.5
_FAREWELL_SECONDS = 2.0
_FORGETTING_PAUSE_SECONDS = 3600.0

_log = structlog.get_logger()


@final
class ImpressionWriter:
    """Moves what was shown from memory into the database."""

    def __init__(self, context: AppContext) -> None:
        self._context = context

    async def flush(self) -> bool:
        """Write what waits; answers whether the database took it. What it did not waits on."""
        shown = self._context.impressions
        while batch := shown.take(_BATCH):
            try:
                await self._add(batch)
            except (DatabaseUnavailableError, OverloadedError):
                shown.put_back(batch)
                return False
        return True

    async def keep_flushing(self) -> None:
        """Write every half second, for ever, and what is left at the end."""
        try:
            while True:
                await asyncio.sleep(_PAUSE_SECONDS)
                await self.flush()
        finally:
            # A database that hangs must not keep the process from its end.
            with suppress(TimeoutError):
                async with asyncio.timeout(_FAREWELL_SECONDS):
                    await self.flush()

    async def forget(self) -> int:
        """Forget what is older than the settings want it kept; answers how much that was."""
        before = now() - self._context.settings.recommendation_days * MICROSECONDS_PER_DAY
        try:
            forgotten = await self._forget(before)
        except (DatabaseUnavailableError, OverloadedError):
            return 0
        if forgotten:
            _log.info("recommendations_forgotten", recommendations=forgotten)
        return forgotten

    async def keep_forgetting(self) -> None:
        """Forget at once, as no process may live for an hour, and then every hour, for ever."""
        while True:
            await self.forget()
            await asyncio.sleep(_FORGETTING_PAUSE_SECONDS)

    async def _add(self, answers: list[Impression]) -> None:
        await self._context.database.write(
            lambda session: RecommendationRepository(session).add(answers)
        )

    async def _forget(self, before: int) -> int:
        return await self._context.database.write(
            lambda session: RecommendationRepository(session).forget_before(before)
        )
