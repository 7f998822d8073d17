"""Records of acts that have no transaction of their own, such as exports and backups."""

from typing import Any

from app.db.audit import Act, AuditRepository
from app.db.clock import read_time
from app.db.database import Database


def record_act(database_url: str, act: Act, *, actor: str, **detail: Any) -> None:
    """Record an act in a transaction of its own, before the act begins.

    Raises:
        DatabaseUnavailableError: if it cannot be recorded; the act must then not take place.
    """
    database = Database(database_url, threads=1, queue=0)
    try:
        database.write_blocking(
            lambda session: AuditRepository(session).add(
                act, actor=actor, at=read_time(session), **detail
            )
        )
    finally:
        database.close()
