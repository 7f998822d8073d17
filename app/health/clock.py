"""Keeping the service at the database's time, and reporting how far the machine's clock is off."""

import structlog

from app.context import AppContext

MAX_OFFSET_SECONDS = 5.0
"""Offset from which a machine's clock is reported as wrong; responses do not depend on it."""

_log = structlog.get_logger()


async def synchronize_clock(context: AppContext) -> None:
    """Read the database's time once; if it does not answer, the clock goes on without.

    Raises:
        DatabaseUnavailableError: if it does not answer.
        OverloadedError: if too many calls are waiting.
    """
    clock = context.clock
    was_off = _is_off(clock.offset_seconds)
    await context.database.read(clock.synchronize, lane="control")
    context.metrics.clock_offset_seconds.set(clock.offset_seconds)
    if _is_off(clock.offset_seconds) and not was_off:
        _log.warning(
            "clock_is_off",
            offset_seconds=round(clock.offset_seconds, 3),
            consequence="responses use the database's time; logs and files carry this machine's",
            remedy="synchronize this machine's clock, or the database's if all machines are off",
        )


def warn_without_database_time(context: AppContext) -> None:
    """Log that instants are by the machine's clock, if the database has not answered yet."""
    if not context.clock.is_synchronized:
        _log.warning(
            "clock_not_synchronized",
            consequence="instants are by this machine's clock until the database answers",
        )


def _is_off(offset_seconds: float) -> bool:
    # Not a number before the first reading.
    return abs(offset_seconds) > MAX_OFFSET_SECONDS
