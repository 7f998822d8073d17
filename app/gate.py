"""Who may come in, and how often: keys, roles and limits, decided before a body is read."""

import ipaddress
import math
import time
from dataclasses import dataclass
from typing import final

from starlette.requests import Request

from app.errors import (
    DatabaseUnavailableError,
    ForbiddenError,
    RateLimitedError,
    UnauthenticatedError,
)
from app.keyring import Key, KeyRing, Role

_REACH: dict[Role, frozenset[Role]] = {
    "read": frozenset({"read"}),
    "ingest": frozenset({"ingest"}),
    "admin": frozenset({"read", "ingest", "admin"}),
}
_FORWARDING = ("forwarded", "x-forwarded-for", "x-real-ip")
_BURST_SECONDS = 2.0
_LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]", ""})


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sent a request, as the audit trail names them."""

    name: str


LOOPBACK = Caller("loopback")
"""This machine itself, where the service is open to it."""


@final
class Gate:
    """Lets requests in by their key.

    Without any key ever made the service answers its own machine only: closed unless opened.
    """

    def __init__(
        self, keys: KeyRing, *, requests_per_second: float, open_to_loopback: bool
    ) -> None:
        self._keys = keys
        self._requests_per_second = requests_per_second
        self._open_to_loopback = open_to_loopback
        self._buckets: dict[str, _Bucket] = {}

    def admit(self, request: Request, role: Role) -> Caller:
        """Who sent a request for something that needs `role`.

        Raises:
            UnauthenticatedError: if it carries no valid key, and needs one.
            ForbiddenError: if its key's role does not reach so far.
            RateLimitedError: if its key asks too often.
            DatabaseUnavailableError: if the keys could not be read yet.
        """
        presented = _presented(request)
        if presented is None and self._opens_to(request):
            return LOOPBACK
        if not self._keys.is_known:
            raise DatabaseUnavailableError(
                "keys must be read from the database once before requests are let in, but it has "
                "not answered yet; try again shortly"
            )
        key = None if presented is None else self._keys.find(presented)
        if key is None:
            raise UnauthenticatedError(
                "a request needs a valid API key, but "
                + ("this one has none" if presented is None else "this key is not valid")
                + "; send Authorization: Bearer kairos_..., made with kairos keys create"
            )
        if role not in _REACH[key.role]:
            raise ForbiddenError(
                f"this needs a key with the role {role!r} or 'admin', but this one has "
                f"{key.role!r}; use another key"
            )
        self._require_allowance(key)
        return Caller(f"{key.name} ({key.key_id})")

    def _opens_to(self, request: Request) -> bool:
        """Whether a request without a key is this machine's own, and may come in as such."""
        return (self._keys.is_empty or self._open_to_loopback) and _is_loopback(request)

    def _require_allowance(self, key: Key) -> None:
        rate = key.requests_per_second or self._requests_per_second
        bucket = self._buckets.setdefault(key.key_id, _Bucket(rate))
        seconds = bucket.take(rate)
        if seconds > 0:
            raise RateLimitedError(
                f"this key may ask {rate:g} times a second, but asked more often; wait "
                f"{seconds:.2f} seconds",
                seconds=math.ceil(seconds),
            )


class _Bucket:
    """Tokens that come back at a steady rate, up to a burst."""

    def __init__(self, rate: float) -> None:
        self._tokens = max(rate * _BURST_SECONDS, 1.0)
        self._at = time.monotonic()

    def take(self, rate: float) -> float:
        """Take a token; answers 0, or the seconds until there is one."""
        at = time.monotonic()
        most = max(rate * _BURST_SECONDS, 1.0)
        self._tokens = min(most, self._tokens + (at - self._at) * rate)
        self._at = at
        if self._tokens < 1:
            return (1 - self._tokens) / rate
        self._tokens -= 1
        return 0.0


def _presented(request: Request) -> str | None:
    """The key that a request carries, valid or not."""
    header = request.headers.get("authorization")
    if header is not None:
        scheme, _, key = header.partition(" ")
        return key.strip() if scheme.lower() == "bearer" else ""
    return request.headers.get("x-api-key")


def _is_loopback(request: Request) -> bool:
    """Whether a request comes from this machine, and not through a proxy on it.

    The name it was asked for by must be local too: a page elsewhere may have its own name resolve
    to this machine, and have a browser here ask.
    """
    if request.client is None or any(name in request.headers for name in _FORWARDING):
        return False
    host = request.headers.get("host", "").rsplit(":", 1)[0]
    if request.headers.get("host", "").startswith("["):
        host = request.headers["host"].partition("]")[0] + "]"
    try:
        is_local = ipaddress.ip_address(request.client.host).is_loopback
    except ValueError:
        return False
    return is_local and host in _LOCAL_NAMES
