"""Counts of the stored events of all items."""

from dataclasses import dataclass
from typing import NamedTuple, final

from sqlalchemy import ColumnElement, func, select, text
from sqlalchemy.orm import Session

from app.db.tables import ErasedUser, StoredEvent


class ItemEvents(NamedTuple):
    """The events of one item in one span of time; instants in epoch microseconds.

    Attributes:
        start: where the span begins, after the first span's beginning.
        last_at: the last event.
    """

    start: int
    item_id: str
    events: int
    last_at: int


@dataclass(frozen=True, slots=True)
class Selection:
    """The events that are counted, and the spans of time by which they are.

    Attributes:
        since: epoch microseconds, included.
        width: microseconds of a span.
        origin: start of the first span, epoch microseconds.
        ignored_actions: actions whose events are not counted.
    """

    since: int
    width: int
    origin: int
    ignored_actions: tuple[str, ...]


class Horizon(NamedTuple):
    """How far the events can be read such that later reads need not look back.

    Attributes:
        newest_id: the largest id of an event. Once `writers` have ended, no event with this id or a
            smaller one appears any more.
        writers: transactions that may still add events, in terms of the database.
        erasures: changes whenever a user is erased.
    """

    newest_id: int
    writers: frozenset[str]
    erasures: tuple[int, int]


@final
class PopularityRepository:
    """Counts events of all items within a transaction that the caller owns."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def read_horizon(self) -> Horizon:
        """Read the horizon of now."""
        counted = select(func.count(), func.coalesce(func.max(ErasedUser.erased_at), 0))
        erased, last_at = self._session.execute(counted).one()
        # In this order: what began later adds events with larger ids only.
        newest_id = self._session.scalar(select(func.max(StoredEvent.id))) or 0
        return Horizon(newest_id, self.list_writers(), (erased, last_at))

    def list_writers(self) -> frozenset[str]:
        """List the transactions that may be adding events: those that hold a lock to add to them.

        None on SQLite, where a transaction gets its ids and becomes visible before the next begins.
        """
        if self._session.get_bind().dialect.name == "sqlite":
            return frozenset()
        holders = text(
            "SELECT virtualtransaction FROM pg_locks WHERE relation = 'events'::regclass "
            "AND mode IN ('RowExclusiveLock', 'ShareRowExclusiveLock')"
        )
        return frozenset(self._session.scalars(holders))

    def find_slice_end(self, since: int, rows: int) -> int | None:
        """Find the instant of the event that is `rows` events after `since`; None without one."""
        later = select(StoredEvent.at).where(StoredEvent.at >= since).order_by(StoredEvent.at)
        return self._session.scalar(later.limit(1).offset(rows))

    def count_between(
        self, selection: Selection, since: int, until: int, through_id: int
    ) -> list[ItemEvents]:
        """Count the events from `since` to before `until`, up to an id."""
        # The sum makes the databases search by time, not by id.
        return self._count(
            selection,
            StoredEvent.at >= since,
            StoredEvent.at < until,
            StoredEvent.id + 0 <= through_id,
        )

    def count_added(
        self, selection: Selection, after_id: int, through_id: int, until: int
    ) -> list[ItemEvents]:
        """Count the events with ids after one and up to another, from before `until`."""
        at = StoredEvent.at + 0
        return self._count(
            selection,
            StoredEvent.id > after_id,
            StoredEvent.id <= through_id,
            at >= selection.since,
            at < until,
        )

    def _count(self, selection: Selection, *conditions: ColumnElement[bool]) -> list[ItemEvents]:
        # An offset from a past origin is positive, so that the remainder is on every database.
        offset = StoredEvent.at - selection.origin
        start = offset - offset % selection.width
        actions = selection.ignored_actions
        is_counted = (StoredEvent.action.not_in(actions),) if actions else ()
        rows = self._session.execute(
            select(start, StoredEvent.item_id, func.count(), func.max(StoredEvent.at))
            .where(*conditions, *is_counted)
            .group_by(start, StoredEvent.item_id)
        )
        return [ItemEvents(*row) for row in rows]
