"""Erasing users from the database, and remembering that it was done."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, final

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

    Whoever adds rows that name users first asks for the erasures `covering` them. Erasing and
    adding then happen one after the other: no row is added behind an erasure's back.
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

    def covering(
        self, rows: Sequence[Mapping[str, Any]], *, adding_to: type[Table]
    ) -> list[int | None]:
        """For each row, until when its user was erased, if it is from before that; else None.

        Rows not covered may be added in the same transaction.

        Args:
            rows: with a `user_id`, or None, and the instant `at`.
            adding_to: the table that they are going to be added to.
        """
        self._lock("ROW EXCLUSIVE", adding_to)
        users = {row["user_id"] for row in rows if row["user_id"] is not None}
        digests = {digest_of(user_id): user_id for user_id in users}
        found = self._session.execute(
            select(ErasedUser.digest, ErasedUser.erased_at).where(ErasedUser.digest.in_(digests))
        )
        erased = {digests[digest]: until for digest, until in found}
        untils = [erased.get(row["user_id"]) for row in rows]
        return [
            until if until is not None and row["at"] <= until else None
            for row, until in zip(rows, untils, strict=True)
        ]

    def _lock(self, mode: str, *tables: type[Table]) -> None:
        # On SQLite a transaction that writes has been alone from its beginning.
        if self._session.get_bind().dialect.name == "postgresql":
            names = ", ".join(table.__tablename__ for table in tables)
            self._session.execute(text(f"LOCK TABLE {names} IN {mode} MODE"))


def digest_of(user_id: str) -> str:
    """What an erased user is remembered by: the SHA-256 of the id, in hexadecimal digits."""
    return hashlib.sha256(user_id.encode()).hexdigest()
