"""Events in the database."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, final

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.db.insert import insert_into
from app.db.tables import StoredEvent, StoredRecommendation
from app.users.repository import ErasureRepository
from model.history import Event

_LAST_CHARACTER = "\U0010ffff"


@dataclass(frozen=True, slots=True)
class KnownUser:
    """A user with stored events."""

    user_id: str
    events: int
    last_at: int


class KeptEvents(NamedTuple):
    """What became of some events.

    Attributes:
        new: the rows that were added.
        clicks: for each of these that a recommendation led to, the version that made it.
        erased: for each event given, until when its user was erased, if it is from before that.
    """

    new: tuple[dict[str, Any], ...]
    clicks: tuple[str, ...]
    erased: tuple[int | None, ...]


@final
class EventRepository:
    """Reads and adds events within one transaction, which belongs to the caller."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def keep(self, rows: Sequence[dict[str, Any]]) -> KeptEvents:
        """Add events, but for those known already and those that an erasure covers."""
        erased = ErasureRepository(self._session).covering(rows, adding_to=StoredEvent)
        living: dict[str, dict[str, Any]] = {}
        for row, until in zip(rows, erased, strict=True):
            if until is None:
                living.setdefault(row["event_id"], row)
        new_ids = self.add(list(living.values()))
        new = tuple(row for event_id, row in living.items() if event_id in new_ids)
        return KeptEvents(new, tuple(self.clicked_versions(new)), tuple(erased))

    def add(self, rows: Sequence[dict[str, Any]]) -> frozenset[str]:
        """Insert events, leaving those already known as they are; answers the ids that were new."""
        if not rows:
            return frozenset()
        statement = (
            insert_into(self._session, StoredEvent)
            .on_conflict_do_nothing(index_elements=["event_id"])
            .returning(StoredEvent.event_id)
        )
        return frozenset(self._session.execute(statement, rows).scalars())

    def clicked_versions(self, rows: Sequence[dict[str, Any]]) -> list[str]:
        """For each of these events that names an item its recommendation showed, whose that was."""
        led_to = [row for row in rows if row["recommendation_id"] is not None]
        if not led_to:
            return []
        found = self._session.execute(
            select(
                StoredRecommendation.recommendation_id,
                StoredRecommendation.model_version,
                StoredRecommendation.item_ids,
            ).where(
                StoredRecommendation.recommendation_id.in_(
                    {row["recommendation_id"] for row in led_to}
                )
            )
        )
        shown = {found_id: (version, item_ids) for found_id, version, item_ids in found}
        return [
            shown[row["recommendation_id"]][0]
            for row in led_to
            if row["item_id"] in shown.get(row["recommendation_id"], ("", ()))[1]
        ]

    def history(self, user_id: str, query_time: int, longest: int) -> list[Event]:
        """The most recent `longest` events of a user as of `query_time`, oldest first."""
        rows = self._session.execute(
            select(StoredEvent.item_id, StoredEvent.at, StoredEvent.action)
            .where(StoredEvent.user_id == user_id, StoredEvent.at <= query_time)
            .order_by(StoredEvent.at.desc(), StoredEvent.id.desc())
            .limit(longest)
        ).all()
        return [Event(item_id, at, action) for item_id, at, action in reversed(rows)]

    def newest(self, user_id: str, limit: int) -> Sequence[StoredEvent]:
        """The most recent events of a user, newest first."""
        return self._session.scalars(
            select(StoredEvent)
            .where(StoredEvent.user_id == user_id)
            .order_by(StoredEvent.at.desc(), StoredEvent.id.desc())
            .limit(limit)
        ).all()

    def users(self, prefix: str, limit: int) -> list[KnownUser]:
        """The first users whose ids start with `prefix`, in code point order."""
        statement = (
            select(StoredEvent.user_id, func.count(), func.max(StoredEvent.at))
            .group_by(StoredEvent.user_id)
            .order_by(StoredEvent.user_id)
            .limit(limit)
        )
        if prefix:
            # A range, so that the index answers; LIKE ignores case on one of the databases.
            statement = statement.where(
                StoredEvent.user_id.between(prefix, prefix + _LAST_CHARACTER)
            )
        return [KnownUser(*row) for row in self._session.execute(statement)]
