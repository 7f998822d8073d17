"""Background tasks that write, count and delete impressions, and delete old audit records."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import structlog

from app.context import AppContext
from app.db.audit import AuditRepository
from app.errors import DatabaseUnavailableError, OverloadedError
from app.recommendations.repository import ImpressionRepository
from app.serving.impressions import Impression
from model.clock import MICROSECONDS_PER_DAY, now

_BATCH = 500
_WRITE_PAUSE_SECONDS = 0.5
_FINAL_WRITE_SECONDS = 2.0
_DELETE_PAUSE_SECONDS = 3600.0
_SLICE_PAUSE_SECONDS = 0.02

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
    before = now() - context.settings.recommendation_days * MICROSECONDS_PER_DAY
    deleted = await _repeat_in_slices(
        lambda: context.database.write(
            lambda session: ImpressionRepository(session).delete_before(before, _BATCH)
        )
    )
    if deleted:
        _log.info("recommendations_deleted", recommendations=deleted)
    return deleted


async def delete_expired_audit_records(context: AppContext) -> int:
    """Delete audit records older than `KAIROS_AUDIT_DAYS`; return their number."""
    before = now() - context.settings.audit_days * MICROSECONDS_PER_DAY
    deleted = await _repeat_in_slices(
        lambda: context.database.write(
            lambda session: AuditRepository(session).delete_before(before, _BATCH)
        )
    )
    if deleted:
        _log.info("audit_records_deleted", records=deleted)
    return deleted


async def keep_deleting_expired_records(context: AppContext) -> None:
    """Delete what expired now, since a process may not live for an hour, then hourly."""
    while True:
        await delete_expired_impressions(context)
        await delete_expired_audit_records(context)
        await asyncio.sleep(_DELETE_PAUSE_SECONDS)


async def count_stored_impressions(context: AppContext) -> int:
    """Count the impressions from before the counts were kept; return their number."""
    counted = await _repeat_in_slices(
        lambda: context.database.write(
            lambda session: ImpressionRepository(session).count_uncounted(_BATCH)
        )
    )
    if counted:
        _log.info("recommendations_counted", recommendations=counted)
    return counted


async def keep_counting_stored_impressions(context: AppContext) -> None:
    """Count the impressions from before the counts were kept, hourly until cancelled.

    More than once only for a restored backup, or for a database that was away.
    """
    while True:
        await count_stored_impressions(context)
        await asyncio.sleep(_DELETE_PAUSE_SECONDS)


async def _repeat_in_slices(write: Callable[[], Awaitable[int]]) -> int:
    """Repeat a short transaction until it changes no row; return the number of changed rows.

    Other writers take their turns in between.
    """
    changed = 0
    while True:
        try:
            rows = await write()
        except (DatabaseUnavailableError, OverloadedError):
            return changed
        changed += rows
        if rows == 0:
            return changed
        await asyncio.sleep(_SLICE_PAUSE_SECONDS)


async def _store(context: AppContext, batch: list[Impression]) -> None:
    clicked_versions = await context.database.write(
        lambda session: ImpressionRepository(session).add(batch)
    )
    for version in clicked_versions:
        context.metrics.recommendation_clicks.labels(version).inc()
