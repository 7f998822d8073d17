"""Creating, listing and revoking API keys from the command line, without a running service."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.auth.key_cache import Key, Role, digest_key, generate_key
from app.db.clock import read_time
from app.db.engine import WRITES, open_engine
from app.keys.repository import KeyRepository
from app.settings import LEAST_RATE, MOST_RATE
from migrations.run import require_upgraded
from model.errors import KairosError

LONGEST_NAME = 128
LONGEST_PREFIX = 255


class KeyRefusedError(KairosError):
    """A key cannot be created or revoked as requested."""

    code = "key_refused"


@dataclass(frozen=True, slots=True)
class IssuedKey:
    """A new key with its secret, which is not stored.

    Attributes:
        is_first: whether it ends the local token's admission.
    """

    key_id: str
    secret: str
    is_first: bool


def create_key(
    database_url: str,
    name: str,
    role: Role,
    *,
    expires_at: int | None = None,
    requests_per_second: float | None = None,
    user_prefix: str | None = None,
    may_list_users: bool = True,
    actor: str = "cli",
) -> IssuedKey:
    """Create a key; running processes accept it within a poll interval.

    Args:
        database_url: the database that holds the keys.
        name: the holder, as the audit trail shows it.
        role: the operations that it authorizes.
        expires_at: epoch microseconds; None for never.
        requests_per_second: the key's own rate limit; None for the service's.
        user_prefix: what the ids of the users that it reaches begin with; None for all users.
        may_list_users: whether it may list users.
        actor: who creates it, for the audit.

    Raises:
        KeyRefusedError: if name, expiry, limit or reach break a rule.
        SchemaBehindError: if the database was not migrated.
        DatabaseUnavailableError: if it does not answer.
    """
    _require_name(name)
    if requests_per_second is not None and not LEAST_RATE <= requests_per_second <= MOST_RATE:
        raise KeyRefusedError(
            f"a key's rate limit is {LEAST_RATE:g} to {MOST_RATE:g} requests a second, but got "
            f"{requests_per_second:g}; give another limit, or none for the service's own"
        )
    _require_reach(role, user_prefix, may_list_users=may_list_users)
    key_id, secret = generate_key()
    with _open_keys(database_url) as (keys, at):
        if expires_at is not None and expires_at <= at:
            raise KeyRefusedError(
                "a key expires in the future, but this expiry has passed; give a later instant"
            )
        is_first = not keys.list_all()
        keys.add(
            Key(
                key_id=key_id,
                name=name,
                role=role,
                digest=digest_key(secret),
                requests_per_second=requests_per_second,
                created_at=at,
                expires_at=expires_at,
                revoked_at=None,
                user_prefix=user_prefix,
                may_list_users=may_list_users,
            ),
            actor=actor,
        )
    return IssuedKey(key_id, secret, is_first)


def list_keys(database_url: str) -> list[Key]:
    """List every key ever created, oldest first.

    Raises:
        SchemaBehindError: if the database was not migrated.
        DatabaseUnavailableError: if it does not answer.
    """
    with _open_keys(database_url) as (keys, _):
        return keys.list_all()


def revoke_key(database_url: str, key_id: str, *, actor: str = "cli") -> bool:
    """Revoke a key; return False if it was revoked already.

    Running processes refuse it within a poll interval.

    Raises:
        KeyRefusedError: if there is no such key.
        SchemaBehindError: if the database was not migrated.
        DatabaseUnavailableError: if it does not answer.
    """
    with _open_keys(database_url) as (keys, at):
        if keys.revoke(key_id, at, actor=actor):
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


def _require_reach(role: Role, user_prefix: str | None, *, may_list_users: bool) -> None:
    if role == "admin" and (user_prefix is not None or not may_list_users):
        raise KeyRefusedError(
            "a key with the role admin reaches every user, but got a limit on users; choose the "
            "role read or ingest, or leave the limit out"
        )
    if role != "read" and not may_list_users:
        raise KeyRefusedError(
            f"only keys with the role read may list users, so only they may be kept from it, but "
            f"got {role!r}; leave --no-user-list out"
        )
    if user_prefix is not None and not (
        1 <= len(user_prefix) <= LONGEST_PREFIX and user_prefix.isprintable()
    ):
        raise KeyRefusedError(
            f"a prefix of user ids is 1 to {LONGEST_PREFIX} printable characters, but got "
            f"{user_prefix[:40]!r}; write it like acme/"
        )


@contextmanager
def _open_keys(database_url: str) -> Iterator[tuple[KeyRepository, int]]:
    """Open the keys, and read the time, in a transaction that is committed when the block ends."""
    require_upgraded(database_url)
    engine = open_engine(database_url)
    try:
        with Session(engine.execution_options(**WRITES)) as session, session.begin():
            yield KeyRepository(session), read_time(session)
    finally:
        engine.dispose()
