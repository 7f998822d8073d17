"""API keys in the database."""

from collections.abc import Sequence
from typing import cast, final

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from app.auth.key_cache import Key, Role
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

    def add(self, key: Key) -> None:
        """Store a new key."""
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

    def revoke(self, key_id: str, at: int) -> bool:
        """Revoke a key; return whether there was one of that id that was not revoked."""
        revoked = self._session.execute(
            update(StoredKey)
            .where(StoredKey.key_id == key_id, StoredKey.revoked_at.is_(None))
            .values(revoked_at=at)
            .returning(StoredKey.key_id)
        )
        return revoked.first() is not None
