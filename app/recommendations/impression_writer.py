"""Background tasks that write, count and delete impressions, and delete old audit records."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import structlog

from app.context import AppContext
from app.db.audit import AuditRepository
from app.errors import DatabaseUnavailableError, OverloadedError
from app.recommendations.repository import ImpressionRepository
from app.serving.impressions import Impression
from model.clock import MICROSECONDS_PER_DAY

_BATCH = 500
_WRITE_PAUSE_SECONDS = 0.5
_FINAL_WRITE_SECONDS = 4.0
_FINAL_RETRY_SECONDS = 0.1
_DELETE_PAUSE_SECONDS = 3600.0
_SLICE_PAUSE_SECONDS = 0.02

_log = structlog.get_logger()


@asynccontextmanager
async def record_impressions(context: AppContext) -> AsyncIterator[None]:
    """Write the buffered impressions every half second during the block, and the rest at its end.

    What the database does not accept then within some seconds is lost: counted and logged.
    """
    try:
        async with context.supervisor.run_every(
            _WRITE_PAUSE_SECONDS, "impressions", lambda: write_impressions(context)
        ):
            yield
    finally:
        # A database that hangs must not delay the end of the process for longer.
        with suppress(TimeoutError):
            async with asyncio.timeout(_FINAL_WRITE_SECONDS):
                await _write_remaining_impressions(context)
        lost = context.impressions.drop_all()
        if lost:
            _log.error(
                "impressions_lost",
                impressions=lost,
                consequence="clicks on them count for no model version",
            )


async def write_impressions(context: AppContext) -> None:
    """Write the impressions that are buffered now.

    An impression that the database refuses for what it contains is dropped, counted and logged; it
    does not stop the others.

    Raises:
        DatabaseUnavailableError, OverloadedError: if the database accepts none now. They stay in
            the buffer, then and after every other failure.
    """
    impressions = context.impressions
    # Those that arrive meanwhile wait for the next time: under load there would always be one more,
    # each in a transaction of its own, which costs more than its recommendation.
    waiting = len(impressions)
    while batch := impressions.take(min(_BATCH, waiting)):
        waiting -= len(batch)
        try:
            await _store(context, batch)
        except BaseException:
            # Written twice is stored once, so that nothing is lost if this task is cancelled.
            impressions.put_back(batch)
            raise


async def delete_expired_impressions(context: AppContext) -> int:
    """Delete impressions older than `KAIROS_RECOMMENDATION_DAYS`; return their number.

    Raises:
        DatabaseUnavailableError, OverloadedError: if the database does not delete them now.
    """
    deleted = await _delete_expired(
        context, ImpressionRepository, context.settings.recommendation_days
    )
    if deleted:
        _log.info("recommendations_deleted", recommendations=deleted)
    return deleted


async def delete_expired_audit_records(context: AppContext) -> int:
    """Delete audit records older than `KAIROS_AUDIT_DAYS`; return their number.

    Raises:
        DatabaseUnavailableError, OverloadedError: if the database does not delete them now.
    """
    deleted = await _delete_expired(context, AuditRepository, context.settings.audit_days)
    if deleted:
        _log.info("audit_records_deleted", records=deleted)
    return deleted


async def _delete_expired(
    context: AppContext,
    repository: type[ImpressionRepository] | type[AuditRepository],
    days: int,
) -> int:
    """Delete the rows of a repository that are older than some days; return their number."""
    before = context.clock.now() - days * MICROSECONDS_PER_DAY
    return await _repeat_in_slices(
        lambda: context.database.write(
            lambda session: repository(session).delete_before(before, _BATCH)
        )
    )


@asynccontextmanager
async def expire_records(context: AppContext) -> AsyncIterator[None]:
    """Delete what expired now, since a process may not live for an hour, then hourly."""

    async def delete_expired_records() -> None:
        await delete_expired_impressions(context)
        await delete_expired_audit_records(context)

    async with context.supervisor.run_every(
        _DELETE_PAUSE_SECONDS, "expired_records", delete_expired_records, is_essential=False
    ):
        yield


async def _write_remaining_impressions(context: AppContext) -> None:
    """Write what is buffered, trying again until the caller gives up."""
    while len(context.impressions):
        try:
            await write_impressions(context)
        except (DatabaseUnavailableError, OverloadedError):
            await asyncio.sleep(_FINAL_RETRY_SECONDS)
        except Exception:
            _log.exception("background_task_failed", task="impressions")
            return


async def count_stored_impressions(context: AppContext) -> int:
    """Count the impressions from before the counts were kept; return their number.

    Raises:
        DatabaseUnavailableError, OverloadedError: if the database does not count them all now.
    """
    counted = await _repeat_in_slices(
        lambda: context.database.write(
            lambda session: ImpressionRepository(session).count_uncounted(_BATCH)
        )
    )
    if counted:
        _log.info("recommendations_counted", recommendations=counted)
    return counted


@asynccontextmanager
async def count_impressions(context: AppContext) -> AsyncIterator[None]:
    """Count the impressions from before the counts were kept, hourly.

    More than once only because a database may be restored beneath a running process.
    """
    async with context.supervisor.run_every(
        _DELETE_PAUSE_SECONDS,
        "uncounted_impressions",
        lambda: count_stored_impressions(context),
        is_essential=False,
    ):
        yield


async def _repeat_in_slices(write: Callable[[], Awaitable[int]]) -> int:
    """Repeat a short transaction until it changes no row; return the number of changed rows.

    Each ends well before its deadline, and other writers take their turns in between.
    """
    changed = 0
    while rows := await write():
        changed += rows
        await asyncio.sleep(_SLICE_PAUSE_SECONDS)
    return changed


async def _store(context: AppContext, batch: list[Impression]) -> None:
    """Store a batch, without those of its impressions that the database refuses."""
    try:
        clicked_versions = await context.database.write(
            lambda session: ImpressionRepository(session).add(batch)
        )
    except (DatabaseUnavailableError, OverloadedError):
        raise
    except Exception:
        if len(batch) == 1:
            context.impressions.count_dropped(1)
            _log.exception("impression_refused")
            return
        middle = len(batch) // 2
        await _store(context, batch[:middle])
        await _store(context, batch[middle:])
    else:
        for version in clicked_versions:
            context.metrics.recommendation_clicks.labels(version).inc()
