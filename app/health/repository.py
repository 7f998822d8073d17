"""What the database says of itself."""

from dataclasses import dataclass
from typing import final

from sqlalchemy import select, text
from sqlalchemy.orm import Session

from app.db.tables import StoredEvent

_SQLITE_FULL = 2


@final
@dataclass(frozen=True, slots=True)
class Durability:
    """Whether what was acknowledged outlives a power cut.

    Attributes:
        settings: what decides it, as the database tells it.
        is_durable: whether all of them are as they should be.
    """

    settings: dict[str, str]
    is_durable: bool


@final
class HealthRepository:
    """Looks at a database within one transaction, which belongs to the caller."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def durability(self) -> Durability:
        """What becomes of a commit that was acknowledged."""
        if self._session.get_bind().dialect.name == "sqlite":
            journal = str(self._session.scalar(text("PRAGMA journal_mode")))
            synchronous = int(self._session.scalar(text("PRAGMA synchronous")) or 0)
            return Durability(
                {"journal_mode": journal, "synchronous": str(synchronous)},
                is_durable=journal == "wal" and synchronous >= _SQLITE_FULL,
            )
        # The second is as our own connections set it, whatever the server's default.
        names = ("fsync", "synchronous_commit", "full_page_writes")
        settings = {
            name: str(self._session.scalar(text("SELECT current_setting(:name)"), {"name": name}))
            for name in names
        }
        return Durability(settings, is_durable="off" not in settings.values())

    def try_writing(self) -> None:
        """Write what is there already; fails where nothing can be written."""
        self._session.execute(text("UPDATE alembic_version SET version_num = version_num"))

    def newest_event(self) -> int | None:
        """When the event stored last arrived, epoch microseconds; None where there is none."""
        newest = select(StoredEvent.received_at).order_by(StoredEvent.id.desc()).limit(1)
        return self._session.scalar(newest)
