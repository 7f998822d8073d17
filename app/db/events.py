"""Events in the database: the row that requests and imports share, and its queries."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import orjson
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.db.erasures import ErasureRepository
from app.db.insert import insert_into
from app.db.tables import StoredEvent, StoredRecommendation
from model.history import Event

_NATURAL = "sha256:"
_LAST_CHARACTER = "\U0010ffff"


class EventRow(NamedTuple):
    """One event as the table `events` stores it. Instants are epoch microseconds, UTC.

    Attributes:
        event_id: the idempotency key; see `compute_natural_key`.
        at: when the event happened.
        recommendation_id: the recommendation that led to the event, if any.
        received_at: when the service received the event.
        sender_event_id: the sender's own id, where `event_id` is a hash of it.
    """

    event_id: str
    user_id: str
    item_id: str
    action: str
    at: int
    value: float | None
    recommendation_id: str | None
    properties: dict[str, Any] | None
    received_at: int
    sender_event_id: str | None = None


def compute_natural_key(
    user_id: str, item_id: str, action: str, at: int, occurrence: int = 0
) -> str:
    """Compute the idempotency key of an event without `event_id`: a hash of its identifying fields.

    Args:
        at: epoch microseconds.
        occurrence: the number of equal events before this one in the same source. A request cannot
            distinguish a repetition from a retry, so there it is 0; a file can.
    """
    fields: list[str | int] = [user_id, item_id, action, at]
    if occurrence:
        fields.append(occurrence)
    return f"{_NATURAL}{hashlib.sha256(orjson.dumps(fields)).hexdigest()}"


def is_natural_key(event_id: str) -> bool:
    """Return whether an id is of the form of `compute_natural_key`, and so not its sender's."""
    return event_id.startswith(_NATURAL) and len(event_id) == len(_NATURAL) + 64


@dataclass(frozen=True, slots=True)
class UserActivity:
    """A user with stored events: how many, and the instant of the last (epoch microseconds)."""

    user_id: str
    events: int
    last_at: int


class SeenItems(NamedTuple):
    """The distinct items of a user's events, and whether every event was read for them."""

    item_ids: frozenset[str]
    is_complete: bool


class AddedEvents(NamedTuple):
    """The outcome of adding events.

    Attributes:
        new: the rows that were added; the rest were duplicates or of erased users.
        clicked_versions: for each added row that a recommendation led to, the model version that
            made the recommendation.
        erased_until: for each given row, the instant of its user's erasure if the row is from
            before it, else None.
    """

    new: tuple[EventRow, ...]
    clicked_versions: tuple[str, ...]
    erased_until: tuple[int | None, ...]


@final
class EventRepository:
    """Reads and adds events within a transaction that the caller owns."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def add(self, rows: Sequence[EventRow]) -> AddedEvents:
        """Add events, except those already stored and those from before their user's erasure."""
        if not rows:
            return AddedEvents((), (), ())
        erasures = ErasureRepository(self._session).find_erasures(rows, adding_to=StoredEvent)
        allowed: dict[str, EventRow] = {}
        for row, until in zip(rows, erasures, strict=True):
            if until is None:
                allowed.setdefault(row.event_id, row)
        new_ids = self._insert(list(allowed.values()))
        new = tuple(row for event_id, row in allowed.items() if event_id in new_ids)
        return AddedEvents(new, tuple(self._list_clicked_versions(new)), tuple(erasures))

    def read_history(self, user_id: str, query_time: int, max_events: int) -> list[Event]:
        """Read the latest `max_events` events of a user up to `query_time`, oldest first."""
        rows = self._session.execute(
            select(StoredEvent.item_id, StoredEvent.at, StoredEvent.action)
            .where(StoredEvent.user_id == user_id, StoredEvent.at <= query_time)
            .order_by(StoredEvent.at.desc(), StoredEvent.id.desc())
            .limit(max_events)
        ).all()
        return [Event(item_id, at, action) for item_id, at, action in reversed(rows)]

    def list_seen_items(self, user_id: str, query_time: int, max_events: int) -> SeenItems:
        """List the distinct items of a user's latest `max_events` events up to `query_time`."""
        history = (StoredEvent.user_id == user_id, StoredEvent.at <= query_time)
        newest_first = (StoredEvent.at.desc(), StoredEvent.id.desc())
        latest = (
            select(StoredEvent.item_id)
            .where(*history)
            .order_by(*newest_first)
            .limit(max_events)
            .subquery()
        )
        # The index holds what this reads.
        beyond = select(StoredEvent.id).where(*history).order_by(*newest_first).offset(max_events)
        return SeenItems(
            frozenset(self._session.scalars(select(latest.c.item_id).distinct())),
            is_complete=self._session.scalar(beyond.limit(1)) is None,
        )

    def list_newest(self, user_id: str, limit: int) -> Sequence[StoredEvent]:
        """Read the latest events of a user, newest first."""
        return self._session.scalars(
            select(StoredEvent)
            .where(StoredEvent.user_id == user_id)
            .order_by(StoredEvent.at.desc(), StoredEvent.id.desc())
            .limit(limit)
        ).all()

    def list_users(self, prefix: str, limit: int) -> list[UserActivity]:
        """Read the first users whose ids start with `prefix`, in code point order."""
        statement = (
            select(StoredEvent.user_id, func.count(), func.max(StoredEvent.at))
            .group_by(StoredEvent.user_id)
            .order_by(StoredEvent.user_id)
            .limit(limit)
        )
        if prefix:
            # A range uses the index; LIKE ignores case on SQLite.
            statement = statement.where(
                StoredEvent.user_id.between(prefix, prefix + _LAST_CHARACTER)
            )
        return [UserActivity(*row) for row in self._session.execute(statement)]

    def _insert(self, rows: Sequence[EventRow]) -> frozenset[str]:
        """Insert rows and return the ids of those that are new; existing ones stay unchanged."""
        if not rows:
            return frozenset()
        statement = (
            insert_into(self._session, StoredEvent)
            .on_conflict_do_nothing(index_elements=["event_id"])
            .returning(StoredEvent.event_id)
        )
        return frozenset(
            self._session.execute(statement, [row._asdict() for row in rows]).scalars()
        )

    def _list_clicked_versions(self, rows: Sequence[EventRow]) -> list[str]:
        """List the version of each row's recommendation, if that contained the row's item."""
        recommended = [
            (row.recommendation_id, row.item_id)
            for row in rows
            if row.recommendation_id is not None
        ]
        if not recommended:
            return []
        matches = self._session.execute(
            select(
                StoredRecommendation.recommendation_id,
                StoredRecommendation.model_version,
                StoredRecommendation.item_ids,
            ).where(StoredRecommendation.recommendation_id.in_({one for one, _ in recommended}))
        )
        impressions = {
            recommendation_id: (version, item_ids)
            for recommendation_id, version, item_ids in matches
        }
        return [
            impressions[recommendation_id][0]
            for recommendation_id, item_id in recommended
            if recommendation_id in impressions and item_id in impressions[recommendation_id][1]
        ]
