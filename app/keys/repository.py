"""API keys in the database."""

from collections.abc import Sequence
from typing import cast, final

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from app.auth.key_cache import Key, Role
from app.db.audit import AuditRepository
from app.db.tables import StoredKey


@final
class KeyRepository:
    """Reads, adds and revokes keys within the caller's transaction."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def list_all(self) -> list[Key]:
        """List every key ever created, oldest first."""
        stored: Sequence[StoredKey] = self._session.scalars(
            select(StoredKey).order_by(StoredKey.created_at, StoredKey.key_id)
        ).all()
        return [
            Key(
                key_id=key.key_id,
                name=key.name,
                role=cast(Role, key.role),
                digest=key.digest,
                requests_per_second=key.requests_per_second,
                created_at=key.created_at,
                expires_at=key.expires_at,
                revoked_at=key.revoked_at,
                user_prefix=key.user_prefix,
                may_list_users=key.may_list_users,
            )
            for key in stored
        ]

    def add(self, key: Key, *, actor: str) -> None:
        """Store a new key, and record who created it."""
        self._session.add(
            StoredKey(
                key_id=key.key_id,
                name=key.name,
                role=key.role,
                digest=key.digest,
                requests_per_second=key.requests_per_second,
                created_at=key.created_at,
                expires_at=key.expires_at,
                revoked_at=key.revoked_at,
                user_prefix=key.user_prefix,
                may_list_users=key.may_list_users,
            )
        )
        AuditRepository(self._session).add(
            "create_key",
            actor=actor,
            at=key.created_at,
            key_id=key.key_id,
            name=key.name,
            role=key.role,
        )

    def revoke(self, key_id: str, at: int, *, actor: str) -> bool:
        """Revoke a key, and record who did; return whether there was one of that id to revoke."""
        revoked = self._session.execute(
            update(StoredKey)
            .where(StoredKey.key_id == key_id, StoredKey.revoked_at.is_(None))
            .values(revoked_at=at)
            .returning(StoredKey.key_id)
        )
        if revoked.first() is None:
            return False
        AuditRepository(self._session).add("revoke_key", actor=actor, at=at, key_id=key_id)
        return True
