"""Items in the database, and counts of the events that name them."""

from collections.abc import Sequence
from typing import Any, NamedTuple, final

from sqlalchemy import (
    exists,
    func,
    literal,
    literal_column,
    select,
    update,
)
from sqlalchemy.orm import Session

from app.db.insert import insert_into
from app.db.tables import ChangeNumber, StoredEvent, StoredItem
from app.serving.item_overlay import LastChange
from model.clock import MICROSECONDS_PER_DAY

_ITEMS = "items"
"""The name of the counter of item changes, as the triggers write it."""

MOST_COUNTED = 100_000
"""Events of one item that are counted at once, at most."""


class ItemRow(NamedTuple):
    """One item as callers describe it. Instants are epoch microseconds, UTC.

    Attributes:
        updated_at: when the service received the description.
        available_from: the first instant at which the item is available; None: no lower bound.
        available_until: the first instant at which it is no longer available; None: no upper bound.
    """

    item_id: str
    title: str | None
    categories: list[str]
    updated_at: int
    available_from: int | None = None
    available_until: int | None = None
    properties: dict[str, Any] | None = None

    def to_columns(self) -> dict[str, Any]:
        """Return the values of the table's columns; storing an item cancels its deletion."""
        folded = None if self.title is None else self.title.casefold()
        return {**self._asdict(), "search_title": folded, "deleted_at": None}


class ItemState(NamedTuple):
    """What a process follows of an item.

    Attributes:
        available_from: epoch microseconds; None for no lower bound.
        available_until: epoch microseconds; None for no upper bound.
        deleted_at: epoch microseconds; None unless the item is deleted.
        change_number: the number of the last change; None for one from before the numbers.
    """

    item_id: str
    title: str | None
    categories: list[str]
    available_from: int | None
    available_until: int | None
    deleted_at: int | None
    change_number: int | None


# Columns, not entities: those of a large table take several times as long.
_STATE = tuple(getattr(StoredItem, name) for name in ItemState._fields)


class EventSpan(NamedTuple):
    """The events of an item within bounds.

    Attributes:
        first_at: the instant of the first event, epoch microseconds.
        last_at: the instant of the last event, epoch microseconds.
        is_complete: whether it holds all events within the bounds.
    """

    first_at: int
    last_at: int
    is_complete: bool


class DailyEvents(NamedTuple):
    """The number of an item's events on one UTC day, for one action.

    Attributes:
        start: the first instant of the day, epoch microseconds.
        action: the action.
        events: the number of events.
    """

    start: int
    action: str
    events: int


@final
class ItemRepository:
    """Reads and replaces items within a transaction that the caller owns."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def put(self, rows: Sequence[ItemRow]) -> None:
        """Create or replace items; their ids must be distinct."""
        if not rows:
            return
        values = [row.to_columns() for row in rows]
        statement = insert_into(self._session, StoredItem)
        replaced = {name: statement.excluded[name] for name in values[0] if name != "item_id"}
        self._session.execute(
            statement.on_conflict_do_update(index_elements=["item_id"], set_=replaced), values
        )

    def find(self, item_id: str) -> StoredItem | None:
        """Read one item; None if it is unknown or deleted."""
        stored = self._session.get(StoredItem, item_id)
        return None if stored is None or stored.deleted_at is not None else stored

    def read_last_change(self) -> LastChange:
        """Read the last committed change of any item: one row by its key.

        Read it before the items: changes up to its number are visible to later statements.
        """
        is_sqlite = self._session.get_bind().dialect.name == "sqlite"
        table = literal(0) if is_sqlite else literal_column("change_numbers.tableoid::bigint")
        counter = self._session.execute(
            select(ChangeNumber.last, table).where(ChangeNumber.name == _ITEMS)
        ).one_or_none()
        return LastChange(0, 0) if counter is None else LastChange(*counter)

    def list_states(self, item_ids: Sequence[str]) -> list[ItemState]:
        """Read some items by id, deletions included."""
        found = select(*_STATE).where(StoredItem.item_id.in_(item_ids))
        return [ItemState(*row) for row in self._session.execute(found)]

    def list_states_by_id(self, after: str | None, limit: int) -> list[ItemState]:
        """Read a page of all items after an id, in order of id, deletions included.

        Only this returns items that have had no number since the migration which added them.
        """
        page = select(*_STATE).order_by(StoredItem.item_id).limit(limit)
        if after is not None:
            page = page.where(StoredItem.item_id > after)
        return [ItemState(*row) for row in self._session.execute(page)]

    def list_states_by_change(self, after: int, limit: int) -> list[ItemState]:
        """Read a page of the items whose last change has a larger number, in order of the numbers.

        Deletions are included. No two changes have the same number.
        """
        page = (
            select(*_STATE)
            .where(StoredItem.change_number > after)
            .order_by(StoredItem.change_number)
            .limit(limit)
        )
        return [ItemState(*row) for row in self._session.execute(page)]

    def delete(self, item_id: str, at: int) -> bool:
        """Clear an item's row and mark it deleted; return whether the item existed."""
        self._lock_change_numbers()
        cleared = dict.fromkeys(
            ("title", "search_title", "available_from", "available_until", "properties")
        )
        deleted = self._session.execute(
            update(StoredItem)
            .where(StoredItem.item_id == item_id, StoredItem.deleted_at.is_(None))
            .values(**cleared, categories=[], updated_at=at, deleted_at=at)
            .returning(StoredItem.item_id)
        )
        return deleted.first() is not None

    def _lock_change_numbers(self) -> None:
        """Lock the counter of changes until the end of the transaction.

        On PostgreSQL, the trigger of an INSERT locks the counter before its row, and that of an
        UPDATE after it. Writers that lock the counter first cannot deadlock.
        """
        statement = insert_into(self._session, ChangeNumber).values(name=_ITEMS, last=0)
        self._session.execute(
            statement.on_conflict_do_update(
                index_elements=["name"], set_={"last": ChangeNumber.last}
            )
        )

    def list_page(
        self, *, after: str | None, search: str | None, limit: int
    ) -> Sequence[StoredItem]:
        """Read items by id, after the id `after`, whose case-folded title contains `search`."""
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
    """Counts the events of one item within a transaction that the caller owns."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def exists(self, item_id: str) -> bool:
        """Return whether the item is stored, or any stored event names it."""
        stored = exists().where(StoredItem.item_id == item_id, StoredItem.deleted_at.is_(None))
        named = exists().where(StoredEvent.item_id == item_id)
        return bool(self._session.scalar(select(stored | named)))

    def find_span(self, item_id: str, since: int | None, until: int | None) -> EventSpan | None:
        """Read the span of the events from `since` to `until`, both included; None without any.

        Of more than `MOST_COUNTED` events the span holds the newest ones only.
        """
        conditions = [StoredEvent.item_id == item_id]
        if since is not None:
            conditions.append(StoredEvent.at >= since)
        if until is not None:
            conditions.append(StoredEvent.at <= until)
        newest_first = (
            select(StoredEvent.at).where(*conditions).order_by(StoredEvent.at.desc()).limit(1)
        )
        last_at = self._session.scalar(newest_first)
        if last_at is None:
            return None
        first_at = self._session.scalar(newest_first.offset(MOST_COUNTED - 1))
        if first_at is None:
            first_at = self._session.scalar(select(func.min(StoredEvent.at)).where(*conditions))
        next_at = self._session.scalar(newest_first.offset(MOST_COUNTED))
        return EventSpan(
            last_at if first_at is None else first_at, last_at, is_complete=next_at is None
        )

    def count_by_day(self, item_id: str, span: EventSpan) -> list[DailyEvents]:
        """Count the events of a span by day and action; days without events are left out."""
        # The remainder of a negative number is negative on both databases.
        time_of_day = (StoredEvent.at % MICROSECONDS_PER_DAY + MICROSECONDS_PER_DAY) % (
            MICROSECONDS_PER_DAY
        )
        by_day = (
            select((StoredEvent.at - time_of_day).label("start"), StoredEvent.action)
            .where(
                StoredEvent.item_id == item_id, StoredEvent.at.between(span.first_at, span.last_at)
            )
            .order_by(StoredEvent.at.desc())
            .limit(MOST_COUNTED)
            .subquery()
        )
        rows = self._session.execute(
            select(by_day.c.start, by_day.c.action, func.count()).group_by(
                by_day.c.start, by_day.c.action
            )
        )
        return [DailyEvents(*row) for row in rows]
