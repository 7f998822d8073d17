"""API keys, cached in memory so that no request waits for the database."""

import hashlib
import hmac
import re
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, final

from model.clock import now

Role = Literal["read", "ingest", "admin"]
"""What a key authorizes: queries, storing events and items, or every operation."""

KeyState = Literal["valid", "expired", "revoked"]

_KEY = re.compile(r"kairos_([0-9a-f]{16})_[A-Za-z0-9_-]{43}", re.ASCII)
_KEY_OR_TOKEN = re.compile(r"kairos_([0-9a-f]{16}|local)_[A-Za-z0-9_-]{43}", re.ASCII)
_NO_DIGEST = "0" * 64


@dataclass(frozen=True, slots=True)
class Key:
    """A stored key.

    Attributes:
        digest: SHA-256 of the whole key, hexadecimal.
        requests_per_second: the key's own rate limit; None for the service's.
        created_at: epoch microseconds.
        expires_at: epoch microseconds; None for never.
        revoked_at: epoch microseconds; None if it is not revoked.
        user_prefix: what the ids of the users that it reaches begin with; None for all users.
        may_list_users: whether it may list users.
    """

    key_id: str
    name: str
    role: Role
    digest: str
    requests_per_second: float | None
    created_at: int
    expires_at: int | None
    revoked_at: int | None
    user_prefix: str | None = None
    may_list_users: bool = True

    def get_state(self, at: int) -> KeyState:
        """Return the state of the key at an instant, epoch microseconds."""
        if self.revoked_at is not None:
            return "revoked"
        return "valid" if self.expires_at is None or at < self.expires_at else "expired"

    def is_valid(self, at: int) -> bool:
        """Return whether the key is valid at an instant, epoch microseconds."""
        return self.get_state(at) == "valid"


def generate_key() -> tuple[str, str]:
    """Generate a key; return its id, and the key itself: the id followed by 256 random bits."""
    key_id = secrets.token_hex(8)
    return key_id, f"kairos_{key_id}_{secrets.token_urlsafe(32)}"


def digest_key(key: str) -> str:
    """Compute the SHA-256 digest that is stored of a key; keys are random, so they need no salt."""
    return hashlib.sha256(key.encode()).hexdigest()


def contains_key(text: str) -> bool:
    """Return whether a text contains anything that looks like a key or a local token."""
    return _KEY_OR_TOKEN.search(text) is not None


@final
class KeyCache:
    """The stored keys, as of the last read of the database.

    Attributes:
        is_loaded: whether the database has been read yet.
    """

    def __init__(self, clock: Callable[[], int] = now) -> None:
        """Start without keys.

        Args:
            clock: the time at which keys must be valid, epoch microseconds.
        """
        self._clock = clock
        self.is_loaded = False
        self._keys: dict[str, Key] = {}

    @property
    def is_empty(self) -> bool:
        """Whether the database was read and holds no key, not even a revoked one."""
        return self.is_loaded and not self._keys

    def replace(self, keys: Iterable[Key]) -> None:
        """Replace the cached keys by those read from the database."""
        self._keys = {key.key_id: key for key in keys}
        self.is_loaded = True

    def find(self, presented: str) -> Key | None:
        """Find the key with a secret; None if it is unknown, expired or revoked."""
        match = _KEY.fullmatch(presented)
        key = None if match is None else self._keys.get(match.group(1))
        # In constant time, whether or not the id exists: timing must reveal neither matching digits
        # nor existing ids.
        expected = _NO_DIGEST if key is None else key.digest
        is_right = hmac.compare_digest(expected, digest_key(presented))
        return key if key is not None and is_right and key.is_valid(self._clock()) else None
