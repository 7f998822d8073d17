"""Loading the API keys from the database into the key cache."""

import structlog

from app.context import AppContext
from app.keys.repository import KeyRepository

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
