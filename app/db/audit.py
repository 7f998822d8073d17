"""Records of acts that must stay known: erasures, keys, bulk reads, imports, backups."""

from typing import Any, Literal, final

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from app.db.tables import AuditRecord

Act = Literal[
    "erase_user",
    "create_key",
    "revoke_key",
    "list_users",
    "export_events",
    "import_events",
    "import_items",
    "prune_events",
    "backup",
    "restore",
]


@final
class AuditRepository:
    """Adds and deletes records within a transaction that the caller owns."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def add(self, act: Act, *, actor: str, at: int, **detail: Any) -> None:
        """Store a record.

        Args:
            actor: a caller's name, or `cli:` and a user of the machine.
            at: the current time, epoch microseconds.
            detail: JSON values; never the id of a user.
        """
        self._session.add(AuditRecord(at=at, actor=actor, action=act, detail=detail))

    def delete_before(self, at: int, most: int) -> int:
        """Delete at most `most` records from before an instant; return their number."""
        expired = (
            select(AuditRecord.id)
            .where(AuditRecord.at < at)
            .order_by(AuditRecord.at, AuditRecord.id)
            .limit(most)
        )
        deleted = self._session.execute(
            delete(AuditRecord).where(AuditRecord.id.in_(expired)).returning(AuditRecord.id)
        )
        return len(deleted.all())
