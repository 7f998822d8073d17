"""Background tasks that write impressions to the database and delete expired ones."""

import asyncio
from contextlib import suppress

import structlog

from app.context import AppContext
from app.errors import DatabaseUnavailableError, OverloadedError
from app.recommendations.repository import ImpressionRepository
from app.serving.impressions import Impression
from model.clock import MICROSECONDS_PER_DAY

_BATCH = 500
_WRITE_PAUSE_SECONDS = 0.5
_FINAL_WRITE_SECONDS = 2.0
_DELETE_PAUSE_SECONDS = 3600.0

_log = structlog.get_logger()


async def write_impressions(context: AppContext) -> bool:
    """Write the buffered impressions; return whether all were written.

    Impressions that the database does not accept stay in the buffer.
    """
    impressions = context.impressions
    while batch := impressions.take(_BATCH):
        try:
            await _store(context, batch)
        except (DatabaseUnavailableError, OverloadedError):
            impressions.put_back(batch)
            return False
    return True


async def keep_writing_impressions(context: AppContext) -> None:
    """Write the buffered impressions every half second until cancelled, then once more."""
    writing: asyncio.Task[bool] | None = None
    try:
        while True:
            await asyncio.sleep(_WRITE_PAUSE_SECONDS)
            writing = asyncio.create_task(write_impressions(context))
            # What it has taken from the buffer must not be lost if this task is cancelled.
            await asyncio.shield(writing)
    finally:
        # A database that hangs must not delay the end of the process.
        with suppress(TimeoutError):
            async with asyncio.timeout(_FINAL_WRITE_SECONDS):
                if writing is not None and not writing.done():
                    await writing
                await write_impressions(context)


async def delete_expired_impressions(context: AppContext) -> int:
    """Delete impressions older than `KAIROS_RECOMMENDATION_DAYS`; return their number."""
    before = context.clock.now() - context.settings.recommendation_days * MICROSECONDS_PER_DAY
    try:
        deleted = await context.database.write(
            lambda session: ImpressionRepository(session).delete_before(before)
        )
    except (DatabaseUnavailableError, OverloadedError):
        return 0
    if deleted:
        _log.info("recommendations_deleted", recommendations=deleted)
    return deleted


async def keep_deleting_expired_impressions(context: AppContext) -> None:
    """Delete expired impressions now, since a process may not live for an hour, then hourly."""
    while True:
        await delete_expired_impressions(context)
        await asyncio.sleep(_DELETE_PAUSE_SECONDS)


async def _store(context: AppContext, batch: list[Impression]) -> None:
    await context.database.write(lambda session: ImpressionRepository(session).add(batch))
