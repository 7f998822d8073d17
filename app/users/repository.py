"""Erasing users from the database, and remembering that it was done."""

import hashlib
from collections.abc import Collection
from typing import NamedTuple, final

from sqlalchemy import delete, func, select, text
from sqlalchemy.orm import Session

from app.db.tables import ErasedUser, StoredEvent, StoredRecommendation, Table


class Erasure(NamedTuple):
    """What was deleted of a user, and up to when (epoch microseconds) the user is gone."""

    events: int
    recommendations: int
    until: int


@final
class ErasureRepository:
    """Erases users, and knows who was, within one transaction that belongs to the caller.

    Whoever adds rows that name users first asks for `erased_until`. Erasing and adding then happen
    one after the other: no row that was on its way is added behind an erasure's back.
    """

    def __init__(self, session: Session) -> None:
        self._session = session

    def erase(self, user_id: str, at: int) -> Erasure:
        """Delete every row of a user, and remember the user's digest.

        Args:
            at: now, epoch microseconds.
        """
        self._lock("SHARE ROW EXCLUSIVE", StoredEvent, StoredRecommendation)
        digest = digest_of(user_id)
        newest = self._session.scalar(
            select(func.max(StoredEvent.at)).where(StoredEvent.user_id == user_id)
        )
        erased_before = self._session.get(ErasedUser, digest)
        until = max(at, newest or at, at if erased_before is None else erased_before.erased_at)
        events = self._session.execute(
            delete(StoredEvent).where(StoredEvent.user_id == user_id).returning(StoredEvent.id)
        )
        recommendations = self._session.execute(
            delete(StoredRecommendation)
            .where(StoredRecommendation.user_id == user_id)
            .returning(StoredRecommendation.model_version)
        )
        erasure = Erasure(len(events.all()), len(recommendations.all()), until)
        self._session.merge(ErasedUser(digest=digest, erased_at=until))
        return erasure

    def erased_until(self, user_ids: Collection[str], *, adding_to: type[Table]) -> dict[str, int]:
        """Those of the users who were erased, and until when; holds until the transaction ends.

        Args:
            adding_to: the table that the transaction is going to add rows of these users to.
        """
        self._lock("ROW EXCLUSIVE", adding_to)
        users = {digest_of(user_id): user_id for user_id in user_ids}
        erased = self._session.execute(
            select(ErasedUser.digest, ErasedUser.erased_at).where(ErasedUser.digest.in_(users))
        )
        return {users[digest]: erased_at for digest, erased_at in erased}

    def _lock(self, mode: str, *tables: type[Table]) -> None:
        # On SQLite a transaction that writes has been alone from its beginning.
        if self._session.get_bind().dialect.name == "postgresql":
            names = ", ".join(table.__tablename__ for table in tables)
            self._session.execute(text(f"LOCK TABLE {names} IN {mode} MODE"))


def digest_of(user_id: str) -> str:
    """What an erased user is remembered by: the SHA-256 of the id, in hexadecimal digits."""
    return hashlib.sha256(user_id.encode()).hexdigest()
