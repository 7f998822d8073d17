"""Loading the API keys from the database into the key cache."""

import structlog

from app.auth.shared_limiter import SharedLimiter
from app.context import AppContext
from app.keys.repository import BudgetRepository, KeyRepository

_log = structlog.get_logger()


async def refresh_keys(context: AppContext) -> None:
    """Read the stored keys once; if that fails, the cached keys stay valid.

    Raises:
        DatabaseUnavailableError: if they cannot be read.
        OverloadedError: if too many calls wait for the database.
    """
    stored = await context.database.read(
        lambda session: KeyRepository(session).list_all(), lane="control"
    )
    if not stored and not context.keys.is_empty:
        _log.warning(
            "no_api_keys",
            consequence="only requests from this machine with its local token are answered",
            listening_on=context.settings.host,
            remedy="kairos keys create NAME --role admin; on this machine, kairos dashboard prints "
            "a link with the token",
        )
    context.keys.replace(stored)


async def settle_budgets(context: AppContext, limiter: SharedLimiter) -> None:
    """Settle what this process admitted with the budgets that all processes share.

    Raises:
        DatabaseUnavailableError: if they cannot be written to; it is settled the next time.
        OverloadedError: if too many calls wait for the database.
    """
    usages = limiter.collect()
    if not usages:
        return
    try:
        levels = await context.database.write(
            lambda session: BudgetRepository(session).settle(limiter.process, usages)
        )
    except BaseException:
        limiter.restore(usages)
        raise
    limiter.apply(levels)


async def delete_old_shares(context: AppContext) -> None:
    """Delete what remains of processes that have ended.

    Raises:
        DatabaseUnavailableError: if the database does not answer.
        OverloadedError: if too many calls wait for it.
    """
    await context.database.write(lambda session: BudgetRepository(session).delete_old())
