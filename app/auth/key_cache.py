"""The API keys that are valid now, in memory, so that no request waits for the database."""

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, final

from model.clock import now

Role = Literal["read", "ingest", "admin"]
"""What a key is for: asking and looking, sending events and items, or everything."""

KeyState = Literal["valid", "expired", "revoked"]

_KEY = re.compile(r"kairos_([0-9a-f]{16})_[A-Za-z0-9_-]{43}", re.ASCII)
_NOBODY = "0" * 64


@dataclass(frozen=True, slots=True)
class Key:
    """A stored key.

    Attributes:
        digest: SHA-256 of the whole key, hexadecimal.
        requests_per_second: its own limit; None for the service's.
        created_at: epoch microseconds.
        expires_at: epoch microseconds; None for never.
        revoked_at: epoch microseconds; None while it is valid.
    """

    key_id: str
    name: str
    role: Role
    digest: str
    requests_per_second: float | None
    created_at: int
    expires_at: int | None
    revoked_at: int | None

    def state(self, at: int) -> KeyState:
        """What has become of the key by an instant."""
        if self.revoked_at is not None:
            return "revoked"
        return "valid" if self.expires_at is None or at < self.expires_at else "expired"

    def is_valid(self, at: int) -> bool:
        """Whether the key opens anything at an instant."""
        return self.state(at) == "valid"


def new_key() -> tuple[str, str]:
    """A fresh key's id, and the key itself: 256 random bits behind the id that finds its row."""
    key_id = secrets.token_hex(8)
    return key_id, f"kairos_{key_id}_{secrets.token_urlsafe(32)}"


def digest_key(key: str) -> str:
    """What is stored of a key. Its bits are random, so a plain hash cannot be guessed back."""
    return hashlib.sha256(key.encode()).hexdigest()


def contains_key(text: str) -> bool:
    """Whether something that looks like one of our keys stands anywhere in a text."""
    return _KEY.search(text) is not None


@final
class KeyCache:
    """The stored keys as they were at the last look at the database.

    Attributes:
        is_known: whether the database has been looked at yet.
        is_empty: whether no key was ever made; only then is the service open to its own machine.
    """

    def __init__(self) -> None:
        self.is_known = False
        self._keys: dict[str, Key] = {}

    @property
    def is_empty(self) -> bool:
        """Whether no key was ever made, as far as is known."""
        return self.is_known and not self._keys

    def replace(self, keys: Iterable[Key]) -> None:
        """Take over what the database says."""
        self._keys = {key.key_id: key for key in keys}
        self.is_known = True

    def find(self, presented: str) -> Key | None:
        """The valid key that was presented; None where it is none of ours, expired or revoked."""
        match = _KEY.fullmatch(presented)
        key = None if match is None else self._keys.get(match.group(1))
        # In constant time, whether or not there is such a key: neither how much of a digest is
        # right nor which ids exist must show.
        expected = _NOBODY if key is None else key.digest
        is_right = hmac.compare_digest(expected, digest_key(presented))
        return key if key is not None and is_right and key.is_valid(now()) else None
