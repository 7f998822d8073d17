"""Creating, listing and revoking API keys from the command line, without a running service."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.auth.key_cache import Key, Role, digest_key, generate_key
from app.db.engine import WRITES, open_engine
from app.keys.repository import KeyRepository
from migrations.run import require_upgraded
from model.clock import now
from model.errors import KairosError

LONGEST_NAME = 128


class KeyRefusedError(KairosError):
    """A key cannot be created or revoked as requested."""

    code = "key_refused"


@dataclass(frozen=True, slots=True)
class IssuedKey:
    """A new key with its secret, which is not stored."""

    key_id: str
    secret: str


def create_key(
    database_url: str,
    name: str,
    role: Role,
    *,
    expires_at: int | None = None,
    requests_per_second: float | None = None,
    actor: str = "cli",
) -> IssuedKey:
    """Create a key; running processes accept it within a poll interval.

    Args:
        database_url: the database that holds the keys.
        name: the holder, as the audit trail shows it.
        role: the operations that it authorizes.
        expires_at: epoch microseconds; None for never.
        requests_per_second: the key's own rate limit; None for the service's.
        actor: who creates it, for the audit.

    Raises:
        KeyRefusedError: if name, expiry or limit break a rule.
        SchemaBehindError: if the database was not migrated.
        DatabaseUnavailableError: if it does not answer.
    """
    at = now()
    _require_name(name)
    if expires_at is not None and expires_at <= at:
        raise KeyRefusedError(
            "a key expires in the future, but this expiry has passed; give a later instant"
        )
    if requests_per_second is not None and not 0 < requests_per_second < float("inf"):
        raise KeyRefusedError(
            f"a key's rate limit is more than 0 requests a second, but got "
            f"{requests_per_second:g}; give a larger limit, or none for the service's own"
        )
    key_id, secret = generate_key()
    key = Key(
        key_id=key_id,
        name=name,
        role=role,
        digest=digest_key(secret),
        requests_per_second=requests_per_second,
        created_at=at,
        expires_at=expires_at,
        revoked_at=None,
    )
    with _open_keys(database_url) as keys:
        keys.add(key, actor=actor)
    return IssuedKey(key_id, secret)


def list_keys(database_url: str) -> list[Key]:
    """List every key ever created, oldest first.

    Raises:
        SchemaBehindError: if the database was not migrated.
        DatabaseUnavailableError: if it does not answer.
    """
    with _open_keys(database_url) as keys:
        return keys.list_all()


def revoke_key(database_url: str, key_id: str, *, actor: str = "cli") -> bool:
    """Revoke a key; return False if it was revoked already.

    Running processes refuse it within a poll interval.

    Raises:
        KeyRefusedError: if there is no such key.
        SchemaBehindError: if the database was not migrated.
        DatabaseUnavailableError: if it does not answer.
    """
    with _open_keys(database_url) as keys:
        if keys.revoke(key_id, now(), actor=actor):
            return True
        if all(key.key_id != key_id for key in keys.list_all()):
            raise KeyRefusedError(
                f"a key is revoked by its id, but none has the id {key_id[:40]!r}; kairos keys "
                "list shows them"
            )
        return False


def _require_name(name: str) -> None:
    if not 1 <= len(name) <= LONGEST_NAME or not name.isprintable() or not name.strip():
        raise KeyRefusedError(
            f"a key's name is 1 to {LONGEST_NAME} printable characters, but got {name[:40]!r}; "
            "name the person or program that is going to use it"
        )


@contextmanager
def _open_keys(database_url: str) -> Iterator[KeyRepository]:
    """Open the keys in a transaction that is committed when the block ends."""
    require_upgraded(database_url)
    engine = open_engine(database_url)
    try:
        with Session(engine.execution_options(**WRITES)) as session, session.begin():
            yield KeyRepository(session)
    finally:
        engine.dispose()
