"""Which events of an import are stored already, whichever id they are stored under."""

from collections import deque
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple, final

from sqlalchemy import BigInteger, String, column, select, values
from sqlalchemy.orm import Session

from app.db.events import EventRow, is_natural_key
from app.db.tables import StoredEvent

_BATCH = 5_000
"""Rows of one lookup; SQLite allows 32,766 parameters, and each row takes two."""


class NaturalFields(NamedTuple):
    """What equal events have in common; `at` in epoch microseconds."""

    user_id: str
    item_id: str
    action: str
    at: int


class StoredEqual(NamedTuple):
    """A stored event that equals one of the import; `is_named` if it has an id of its sender."""

    event_id: str
    is_named: bool


@final
class EqualEvents:
    """Leaves out the events of one import that are stored already.

    Events of the same user, item, action and instant are equal. Two of them are different events if
    each has an id of its sender and the ids differ; one without such an id is any of its equals. So
    exports with ids and older ones without may meet in one database, in any order.

    A stored event stands for one event of the import: what occurs twice is stored twice.
    """

    def __init__(self, repeated: Iterable[EventRow]) -> None:
        """Begin an import.

        Args:
            repeated: the rows of the import that have an equal row in it.
        """
        self._ids_of: dict[NaturalFields, set[str]] = {}
        for row in repeated:
            self._ids_of.setdefault(_get_natural_fields(row), set()).add(row.event_id)
        self._taken: set[str] = set()
        self._matched: set[str] = set()

    def drop_stored(self, session: Session, rows: Sequence[EventRow]) -> list[EventRow]:
        """Leave out the rows that are stored; each row of the import is looked up once."""
        stored_ids = _find_ids(session, rows)
        others = [row for row in rows if row.event_id not in stored_ids]
        equals = _find_equals(session, others)
        free: dict[NaturalFields, FreeEquals] = {}
        kept = []
        for row in others:
            fields = _get_natural_fields(row)
            if fields in equals and fields not in free:
                own = self._ids_of.get(fields, {row.event_id})
                free[fields] = FreeEquals(equals[fields], own | self._taken)
            if fields not in equals or not self._match(row, free[fields]):
                kept.append(row)
        return kept

    def _match(self, row: EventRow, free: "FreeEquals") -> bool:
        """Let a stored event that no other row has taken stand for a row, if there is one."""
        if row.event_id in self._matched:
            return True
        taken = free.take(is_named=_is_named(row.event_id, row.sender_event_id))
        if taken is None:
            return False
        self._taken.add(taken)
        self._matched.add(row.event_id)
        return True


@final
class FreeEquals:
    """Ids of equal stored events that stand for no event of the import yet."""

    def __init__(self, equals: Iterable[StoredEqual], taken: Collection[str]) -> None:
        self._named: deque[str] = deque()
        self._others: deque[str] = deque()
        for equal in equals:
            if equal.event_id not in taken:
                (self._named if equal.is_named else self._others).append(equal.event_id)

    def take(self, *, is_named: bool) -> str | None:
        """Take the first that may stand for an event, which has an id of its sender or not."""
        # Named ones first: an event with a name can only take the others.
        if self._named and not is_named:
            return self._named.popleft()
        return self._others.popleft() if self._others else None


def _get_natural_fields(row: EventRow) -> NaturalFields:
    return NaturalFields(row.user_id, row.item_id, row.action, row.at)


def _is_named(event_id: str, sender_event_id: str | None) -> bool:
    """Return whether an event has an id of its sender."""
    return sender_event_id is not None or not is_natural_key(event_id)


def _find_ids(session: Session, rows: Sequence[EventRow]) -> set[str]:
    found: set[str] = set()
    for begin in range(0, len(rows), _BATCH):
        ids = [row.event_id for row in rows[begin : begin + _BATCH]]
        statement = select(StoredEvent.event_id).where(StoredEvent.event_id.in_(ids))
        found.update(session.scalars(statement))
    return found


def _find_equals(
    session: Session, rows: Iterable[EventRow]
) -> dict[NaturalFields, list[StoredEqual]]:
    """Find the stored events that are equal to some rows."""
    fields = {_get_natural_fields(row) for row in rows}
    instants = sorted({(it.user_id, it.at) for it in fields})
    found: dict[NaturalFields, list[StoredEqual]] = {}
    for begin in range(0, len(instants), _BATCH):
        # Joined, since SQLite scans the table for a row value in a list.
        sought = (
            values(column("user_id", String), column("at", BigInteger))
            .data(instants[begin : begin + _BATCH])
            .cte("sought")
        )
        matches = session.execute(
            select(
                StoredEvent.user_id,
                StoredEvent.item_id,
                StoredEvent.action,
                StoredEvent.at,
                StoredEvent.event_id,
                StoredEvent.sender_event_id,
            ).join(
                sought,
                (StoredEvent.user_id == sought.c.user_id) & (StoredEvent.at == sought.c.at),
            )
        )
        for user_id, item_id, action, at, event_id, sender_event_id in matches:
            equal = NaturalFields(user_id, item_id, action, at)
            if equal in fields:
                is_named = _is_named(event_id, sender_event_id)
                found.setdefault(equal, []).append(StoredEqual(event_id, is_named))
    return found
