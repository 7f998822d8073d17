"""Background tasks that write impressions to the database and delete expired ones."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import structlog

from app.context import AppContext
from app.errors import DatabaseUnavailableError, OverloadedError
from app.recommendations.repository import ImpressionRepository
from app.serving.impressions import Impression
from model.clock import MICROSECONDS_PER_DAY

_BATCH = 500
_WRITE_PAUSE_SECONDS = 0.5
_FINAL_WRITE_SECONDS = 4.0
_FINAL_RETRY_SECONDS = 0.1
_DELETE_BATCH = 5_000
_DELETE_PAUSE_SECONDS = 3600.0

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
    """Write the buffered impressions.

    An impression that the database refuses for what it contains is dropped, counted and logged; it
    does not stop the others.

    Raises:
        DatabaseUnavailableError, OverloadedError: if the database accepts none now. They stay in
            the buffer, then and after every other failure.
    """
    impressions = context.impressions
    while batch := impressions.take(_BATCH):
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
    before = context.clock.now() - context.settings.recommendation_days * MICROSECONDS_PER_DAY
    total, deleted = 0, _DELETE_BATCH
    # In batches, each of which ends well before the deadline of a transaction.
    while deleted == _DELETE_BATCH:
        deleted = await context.database.write(
            lambda session: ImpressionRepository(session).delete_before(before, _DELETE_BATCH)
        )
        total += deleted
    if total:
        _log.info("recommendations_deleted", recommendations=total)
    return total


@asynccontextmanager
async def expire_impressions(context: AppContext) -> AsyncIterator[None]:
    """Delete expired impressions now, since a process may not live for an hour, then hourly."""
    async with context.supervisor.run_every(
        _DELETE_PAUSE_SECONDS,
        "expired_impressions",
        lambda: delete_expired_impressions(context),
        is_essential=False,
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


async def _store(context: AppContext, batch: list[Impression]) -> None:
    """Store a batch, without those of its impressions that the database refuses."""
    try:
        await context.database.write(lambda session: ImpressionRepository(session).add(batch))
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
