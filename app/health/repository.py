"""Checks of the database itself."""

from dataclasses import dataclass
from typing import final

from sqlalchemy import select, text
from sqlalchemy.orm import Session

from app.db.tables import StoredEvent

_SQLITE_FULL = 2


@final
@dataclass(frozen=True, slots=True)
class Durability:
    """Whether acknowledged commits survive a power cut.

    Attributes:
        settings: the deciding settings of the database, by name.
        is_durable: whether all of them are safe.
    """

    settings: dict[str, str]
    is_durable: bool


@final
class HealthRepository:
    """Checks a database within the caller's transaction."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def read_durability(self) -> Durability:
        """Read the durability of acknowledged commits."""
        if self._session.get_bind().dialect.name == "sqlite":
            journal = str(self._session.scalar(text("PRAGMA journal_mode")))
            synchronous = int(self._session.scalar(text("PRAGMA synchronous")) or 0)
            return Durability(
                {"journal_mode": journal, "synchronous": str(synchronous)},
                is_durable=journal == "wal" and synchronous >= _SQLITE_FULL,
            )
        # `synchronous_commit` is set per connection, see `app.db.engine`.
        names = ("fsync", "synchronous_commit", "full_page_writes")
        settings = {
            name: str(self._session.scalar(text("SELECT current_setting(:name)"), {"name": name}))
            for name in names
        }
        return Durability(settings, is_durable="off" not in settings.values())

    def try_writing(self) -> None:
        """Rewrite an existing value; raise if the database cannot be written to."""
        self._session.execute(text("UPDATE alembic_version SET version_num = version_num"))

    def read_newest_arrival(self) -> int | None:
        """Read the arrival of the latest stored event, epoch microseconds; None without events."""
        newest = select(StoredEvent.received_at).order_by(StoredEvent.id.desc()).limit(1)
        return self._session.scalar(newest)
