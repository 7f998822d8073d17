"""Items in the database, and what the events there say of them."""

from collections.abc import Sequence
from typing import Any, NamedTuple, final

from sqlalchemy import ColumnElement, and_, case, exists, func, select, update
from sqlalchemy.orm import Session

from app.db.insert import insert_into
from app.db.tables import StoredEvent, StoredItem
from app.serving.item_overlay import Updates
from model.clock import MICROSECONDS_PER_DAY

_REPLACED = (
    "title",
    "search_title",
    "categories",
    "available_from",
    "available_until",
    "properties",
    "updated_at",
    "deleted_at",
)


class SpanOfEvents(NamedTuple):
    """The events of an item within some bounds.

    Attributes:
        first_at: when the first one happened, epoch microseconds.
        last_at: when the last one did.
        events: how many there are.
    """

    first_at: int
    last_at: int
    events: int


class DayOfEvents(NamedTuple):
    """How many events of an item one UTC day has, of one action.

    Attributes:
        start: when the day begins, epoch microseconds.
        action: the action; None for those that were not asked for.
        events: how many.
    """

    start: int
    action: str | None
    events: int


@final
class ItemRepository:
    """Reads and replaces items within one transaction, which belongs to the caller."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def put(self, rows: Sequence[dict[str, Any]]) -> None:
        """Create or replace items; ids must be distinct."""
        if not rows:
            return
        statement = insert_into(self._session, StoredItem)
        replaced = {column: statement.excluded[column] for column in _REPLACED}
        self._session.execute(
            statement.on_conflict_do_update(index_elements=["item_id"], set_=replaced), rows
        )

    def find(self, item_id: str) -> StoredItem | None:
        """One item that was not deleted."""
        stored = self._session.get(StoredItem, item_id)
        return None if stored is None or stored.deleted_at is not None else stored

    def updates_since(self, updated_at: int) -> Updates:
        """What `changed_since` would answer, told apart from other answers without reading it."""
        later = StoredItem.updated_at >= updated_at
        # Less what all have in common: whole instants would add up to more than 64 bits hold.
        stamps = func.coalesce(func.sum(StoredItem.updated_at - updated_at), 0)
        items, total = self._session.execute(select(func.count(), stamps).where(later)).one()
        return Updates(updated_at, items, int(total))

    def changed_since(self, updated_at: int) -> Sequence[StoredItem]:
        """Items described or deleted at `updated_at` or later."""
        return self._session.scalars(
            select(StoredItem).where(StoredItem.updated_at >= updated_at)
        ).all()

    def delete(self, item_id: str, at: int) -> bool:
        """Forget all that was said of an item but that it is gone; answers whether it was there."""
        nothing = dict.fromkeys(
            ("title", "search_title", "available_from", "available_until", "properties")
        )
        deleted = self._session.execute(
            update(StoredItem)
            .where(StoredItem.item_id == item_id, StoredItem.deleted_at.is_(None))
            .values(**nothing, categories=[], updated_at=at, deleted_at=at)
            .returning(StoredItem.item_id)
        )
        return deleted.first() is not None

    def page(self, *, after: str | None, search: str | None, limit: int) -> Sequence[StoredItem]:
        """Items in order of id, those after `after` whose folded title contains `search`."""
        statement = (
            select(StoredItem)
            .where(StoredItem.deleted_at.is_(None))
            .order_by(StoredItem.item_id)
            .limit(limit)
        )
        if after is not None:
            statement = statement.where(StoredItem.item_id > after)
        if search:
            statement = statement.where(StoredItem.search_title.contains(search, autoescape=True))
        return self._session.scalars(statement).all()


@final
class ItemEventRepository:
    """Counts the events of one item within one transaction, which belongs to the caller."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def know(self, item_id: str) -> bool:
        """Whether an item is stored, or any event names it."""
        stored = exists().where(StoredItem.item_id == item_id, StoredItem.deleted_at.is_(None))
        named = exists().where(StoredEvent.item_id == item_id)
        return bool(self._session.scalar(select(stored | named)))

    def span(self, item_id: str, since: int | None, until: int | None) -> SpanOfEvents | None:
        """The events from `since` to `until` (both included); None where there are none."""
        conditions = [StoredEvent.item_id == item_id]
        if since is not None:
            conditions.append(StoredEvent.at >= since)
        if until is not None:
            conditions.append(StoredEvent.at <= until)
        first_at, last_at, events = self._session.execute(
            select(func.min(StoredEvent.at), func.max(StoredEvent.at), func.count()).where(
                *conditions
            )
        ).one()
        return SpanOfEvents(first_at, last_at, events) if events else None

    def most_frequent_actions(self, item_id: str, span: SpanOfEvents, most: int) -> list[str]:
        """The actions of the events of a span, the most frequent first."""
        return list(
            self._session.scalars(
                select(StoredEvent.action)
                .where(_within(item_id, span))
                .group_by(StoredEvent.action)
                .order_by(func.count().desc(), StoredEvent.action)
                .limit(most)
            )
        )

    def days(self, item_id: str, span: SpanOfEvents, actions: Sequence[str]) -> list[DayOfEvents]:
        """The events of a span by day, those of `actions` apart; days without any are left out."""
        # The remainder of a negative number is negative on either database.
        into_the_day = (StoredEvent.at % MICROSECONDS_PER_DAY + MICROSECONDS_PER_DAY) % (
            MICROSECONDS_PER_DAY
        )
        told = (
            select(
                (StoredEvent.at - into_the_day).label("start"),
                case((StoredEvent.action.in_(actions), StoredEvent.action)).label("action"),
            )
            .where(_within(item_id, span))
            .subquery()
        )
        rows = self._session.execute(
            select(told.c.start, told.c.action, func.count()).group_by(told.c.start, told.c.action)
        )
        return [DayOfEvents(*row) for row in rows]


def _within(item_id: str, span: SpanOfEvents) -> ColumnElement[bool]:
    return and_(StoredEvent.item_id == item_id, StoredEvent.at.between(span.first_at, span.last_at))
