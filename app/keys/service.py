"""Keeping the key ring up to date with the database."""

from typing import final

import structlog

from app.context import AppContext
from app.errors import DatabaseUnavailableError, OverloadedError
from app.keys.repository import KeyRepository

_log = structlog.get_logger()


@final
class KeyService:
    """Reads the keys; the command line makes and revokes them."""

    def __init__(self, context: AppContext) -> None:
        self._context = context

    async def refresh(self) -> None:
        """Look at the database once; while it does not answer, the keys known last stay valid."""
        keys = self._context.keys
        try:
            stored = await self._context.database.read(lambda session: KeyRepository(session).all())
        except (DatabaseUnavailableError, OverloadedError):
            return
        if not stored and not keys.is_empty:
            _log.warning(
                "no_api_keys",
                consequence="only requests from this machine itself are answered",
                listening_on=self._context.settings.host,
                remedy="kairos keys create NAME --role admin",
            )
        keys.replace(stored)
