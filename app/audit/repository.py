"""The audit: records of acts and of changes of the served models, as one."""

from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar, final

from sqlalchemy import ColumnElement, Select, select, tuple_
from sqlalchemy.orm import Session

from app.db.tables import AuditRecord, ModelChange


class Position(NamedTuple):
    """The place of an entry in the audit, which is in descending order of positions.

    Attributes:
        at: epoch microseconds.
        source: 0 for records of acts, 1 for changes of the served models.
        number: the id of the row.
    """

    at: int
    source: int
    number: int


@dataclass(frozen=True, slots=True)
class Entry:
    """An act: who did what, when."""

    position: Position
    actor: str
    act: str
    detail: dict[str, Any]


Row = TypeVar("Row", AuditRecord, ModelChange)

_ACTS, _CHANGES = 0, 1


@final
class AuditReader:
    """Reads the audit within a transaction that the caller owns."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def list_page(self, *, before: Position | None, limit: int) -> list[Entry]:
        """Read the newest entries before a position, newest first."""
        entries = [*self._list_acts(before, limit), *self._list_changes(before, limit)]
        return sorted(entries, key=lambda entry: entry.position, reverse=True)[:limit]

    def _list_acts(self, before: Position | None, limit: int) -> list[Entry]:
        rows = self._session.scalars(_select_page(AuditRecord, _ACTS, before, limit))
        return [
            Entry(Position(row.at, _ACTS, row.id), row.actor, row.action, row.detail or {})
            for row in rows
        ]

    def _list_changes(self, before: Position | None, limit: int) -> list[Entry]:
        rows = self._session.scalars(_select_page(ModelChange, _CHANGES, before, limit))
        return [
            Entry(Position(row.at, _CHANGES, row.id), row.actor, row.change, _describe(row))
            for row in rows
        ]


def _select_page(table: type[Row], source: int, before: Position | None, limit: int) -> Select[Row]:
    statement = select(table).order_by(table.at.desc(), table.id.desc()).limit(limit)
    return statement if before is None else statement.where(_is_before(table, source, before))


def _is_before(table: type[Row], source: int, before: Position) -> ColumnElement[bool]:
    if source == before.source:
        return tuple_(table.at, table.id) < (before.at, before.number)
    return table.at <= before.at if source < before.source else table.at < before.at


def _describe(change: ModelChange) -> dict[str, Any]:
    fields = {
        "version": change.version,
        "previous_version": change.previous_version,
        "reason": change.reason,
        "traffic": change.detail if change.change == "traffic" else None,
    }
    return {name: value for name, value in fields.items() if value is not None}
