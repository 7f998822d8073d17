"""Forgetting a user."""

from typing import final

import structlog

from app.db.database import Database
from app.errors import OverloadedError
from app.http.types import format_instant
from app.serving.impressions import ImpressionBuffer
from app.users.repository import ErasureRepository
from app.users.schemas import ErasedUser
from model.clock import now

_log = structlog.get_logger()


@final
class ErasureService:
    """Erases users; of who they were, only a digest is kept."""

    def __init__(self, database: Database, shown: ImpressionBuffer | None = None) -> None:
        self._database = database
        self._shown = shown

    async def erase(self, user_id: str, *, actor: str) -> ErasedUser:
        """Delete all that is stored of a user; answers once that is committed.

        What other processes still hold of the user in memory never reaches the database: writers
        leave erased users out.

        Args:
            actor: who wants it, for the log, which never says who was erased.

        Raises:
            DatabaseUnavailableError: if the database does not answer; try again, nothing is lost.
            OverloadedError: if too many requests wait already.
        """
        if self._shown is not None:
            self._shown.forget(user_id)
        at = now()
        erasure = await self._database.write(
            lambda session: ErasureRepository(session).erase(user_id, at)
        )
        await self._empty_log()
        _log.info(
            "user_erased",
            actor=actor,
            deleted_events=erasure.events,
            deleted_recommendations=erasure.recommendations,
        )
        return ErasedUser(
            deleted_events=erasure.events,
            deleted_recommendations=erasure.recommendations,
            erased_until=format_instant(erasure.until),
        )

    async def _empty_log(self) -> None:
        """What was erased is not to be legible in a log either, but erased it is anyhow."""
        try:
            was_emptied = await self._database.truncate_wal()
        except OverloadedError:
            was_emptied = False
        if not was_emptied:
            _log.warning(
                "write_ahead_log_not_emptied",
                consequence="erased rows are legible in the -wal file until it is written over",
                remedy="erase the user once more when fewer readers are about",
            )
