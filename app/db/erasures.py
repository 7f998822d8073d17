"""Erased users: deletes their rows, and keeps copies of old rows from being added again."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol, final

from sqlalchemy import ColumnElement, delete, func, select, text
from sqlalchemy.orm import Session

from app.db.audit import AuditRepository
from app.db.clicks import find_clicks, reset_clicks
from app.db.erasure_log import ErasureLog
from app.db.tables import ErasedUser, StoredEvent, StoredRecommendation, Table


class UserRow(Protocol):
    """A row about a user, or about no user (None), at an instant (epoch microseconds)."""

    @property
    def user_id(self) -> str | None:
        """The user's id."""

    @property
    def at(self) -> int:
        """Epoch microseconds."""


class Erasure(NamedTuple):
    """What erasing a user deleted.

    Attributes:
        events: deleted rows.
        recommendations: deleted rows.
        until: the instant up to which rows of the user are refused, epoch microseconds.
        was_erased_before: whether an earlier erasure of the same id is recorded.
    """

    events: int
    recommendations: int
    until: int
    was_erased_before: bool

    @property
    def has_deleted(self) -> bool:
        """Whether anything was stored of the user."""
        return self.events + self.recommendations > 0

    @property
    def is_unknown(self) -> bool:
        """Whether nothing is known of the id: nothing stored, and no earlier erasure."""
        return not self.has_deleted and not self.was_erased_before


class DeletedSlice(NamedTuple):
    """Number of rows that were deleted of a user, and whether they were the last."""

    rows: int
    is_last: bool


@final
class ErasureRepository:
    """Erases users, and looks up erased ones, within a transaction that the caller owns.

    Code that adds rows about users must call `find_erasures` for them first. It takes a lock that
    erasing conflicts with, so no row can be added while its user is being erased.
    """

    def __init__(self, session: Session) -> None:
        self._session = session

    def erase(self, user_id: str, at: int, *, actor: str, log: ErasureLog | None = None) -> Erasure:
        """Delete every row of a user, store the digest of the user's id, and record the act.

        Args:
            at: the current time, epoch microseconds.
            actor: who requested it, for the audit.
            log: gets the erasure before the commit. So every acknowledged one is in the log; one
                that is in the log alone was requested, and is made up for at the next start.

        Raises:
            ErasureLogError: if the erasure cannot be logged.
        """
        self._lock("SHARE ROW EXCLUSIVE", StoredEvent, StoredRecommendation)
        digest = compute_user_digest(user_id)
        newest = self._session.scalar(
            select(func.max(StoredEvent.at)).where(StoredEvent.user_id == user_id)
        )
        previous = self._session.get(ErasedUser, digest)
        until = max(at, newest or at, at if previous is None else previous.erased_at)
        # First: the triggers need then not look for other clicks on them.
        recommendations = self._session.execute(
            delete(StoredRecommendation)
            .where(StoredRecommendation.user_id == user_id)
            .returning(StoredRecommendation.model_version)
        )
        erasure = Erasure(
            events=self._delete_events(StoredEvent.user_id == user_id),
            recommendations=len(recommendations.all()),
            until=until,
            was_erased_before=previous is not None,
        )
        self._session.merge(ErasedUser(digest=digest, erased_at=until))
        AuditRepository(self._session).add(
            "erase_user",
            actor=actor,
            at=at,
            sha256=digest,
            events=erasure.events,
            recommendations=erasure.recommendations,
        )
        if log is not None:
            log.append({digest: until})
        return erasure

    def read_all(self) -> dict[str, int]:
        """Read the instants up to which users are erased (epoch microseconds), by digest."""
        rows = self._session.execute(select(ErasedUser.digest, ErasedUser.erased_at))
        return {row.digest: row.erased_at for row in rows}

    def record(self, erasures: Mapping[str, int]) -> None:
        """Store erasures of users by digest, without deleting rows; later instants stay."""
        # Replicas that start together record the same erasures.
        self._lock("SHARE ROW EXCLUSIVE", StoredEvent, StoredRecommendation)
        for digest, until in erasures.items():
            previous = self._session.get(ErasedUser, digest)
            if previous is None or previous.erased_at < until:
                self._session.merge(ErasedUser(digest=digest, erased_at=until))

    def delete_slice(self, user_id: str, until: int, *, most: int) -> DeletedSlice:
        """Delete some rows of a user up to an instant, epoch microseconds, without recording it.

        Args:
            most: impressions, and as many events.
        """
        self._lock("SHARE ROW EXCLUSIVE", StoredEvent, StoredRecommendation)
        impressions = (
            select(StoredRecommendation.recommendation_id)
            .where(StoredRecommendation.user_id == user_id, StoredRecommendation.at <= until)
            .limit(most)
        )
        found = self._session.execute(
            delete(StoredRecommendation)
            .where(StoredRecommendation.recommendation_id.in_(impressions))
            .returning(StoredRecommendation.recommendation_id)
        )
        recommendations = len(found.all())
        events = self._delete_events(
            StoredEvent.id.in_(
                select(StoredEvent.id)
                .where(StoredEvent.user_id == user_id, StoredEvent.at <= until)
                .order_by(StoredEvent.at, StoredEvent.id)
                .limit(most)
            )
        )
        return DeletedSlice(recommendations + events, max(recommendations, events) < most)

    def _delete_events(self, *conditions: ColumnElement[bool]) -> int:
        """Delete events, and return how many there were."""
        unclicked = reset_clicks(self._session, *conditions)
        deleted = self._session.execute(
            delete(StoredEvent).where(*conditions).returning(StoredEvent.id)
        )
        events = len(deleted.all())
        find_clicks(self._session, unclicked)
        return events

    def find_erasures(self, rows: Sequence[UserRow], *, adding_to: type[Table]) -> list[int | None]:
        """Find the instant of its user's erasure for each row from before it; None for the others.

        The rows with None may be added in the same transaction.

        Args:
            adding_to: the table that the rows will be added to; it is locked.
        """
        self._lock("ROW EXCLUSIVE", adding_to)
        users = {row.user_id for row in rows if row.user_id is not None}
        digests = {compute_user_digest(user_id): user_id for user_id in users}
        matches = self._session.execute(
            select(ErasedUser.digest, ErasedUser.erased_at).where(ErasedUser.digest.in_(digests))
        )
        until_by_user = {digests[digest]: until for digest, until in matches}
        return [
            None
            if row.user_id is None
            else _keep_if_covering(until_by_user.get(row.user_id), row.at)
            for row in rows
        ]

    def _lock(self, mode: str, *tables: type[Table]) -> None:
        # On SQLite a writing transaction is exclusive from its beginning.
        if self._session.get_bind().dialect.name == "postgresql":
            names = ", ".join(table.__tablename__ for table in tables)
            self._session.execute(text(f"LOCK TABLE {names} IN {mode} MODE"))


def compute_user_digest(user_id: str) -> str:
    """Compute the SHA-256 of a user's id in hexadecimal: all that is kept of an erased user."""
    return hashlib.sha256(user_id.encode()).hexdigest()


def _keep_if_covering(until: int | None, at: int) -> int | None:
    return until if until is not None and at <= until else None
