"""Access control: keys, roles and rate limits, checked before a body is read."""

import math
from dataclasses import dataclass
from typing import final
from urllib.parse import unquote

from starlette.requests import Request

from app.auth.key_cache import Key, KeyCache, Role, contains_key
from app.auth.loopback import get_client_network, is_loopback
from app.auth.rate_limiter import RateLimiter
from app.errors import (
    DatabaseUnavailableError,
    ForbiddenError,
    RateLimitedError,
    UnauthenticatedError,
)

_AUTHORIZED_ROLES: dict[str, frozenset[Role]] = {
    "read": frozenset({"read"}),
    "ingest": frozenset({"ingest"}),
    "admin": frozenset({"read", "ingest", "admin"}),
}
_MOST_NAMES = 4096


@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of a request.

    Attributes:
        name: the name in the audit trail.
        role: the role of the key; `admin` for a request from this machine itself without one.
        has_key: whether the request carried a key.
    """

    name: str
    role: Role
    has_key: bool


LOOPBACK = Caller("loopback", "admin", has_key=False)
"""The caller of a request from this machine itself, where such requests need no key."""


@final
class AccessControl:
    """Authorizes requests by their key.

    Until a first key is created, only requests from this machine itself are authorized. Requests
    without a valid key are rate-limited by network, apart from requests with one.

    Args:
        requests_per_second: the rate limit of each key without its own, and of each network's
            requests without a valid key.
        open_to_loopback: whether requests from this machine need no key even once keys exist.
        key_limiter: limits keys.
        network_limiter: limits networks.
    """

    def __init__(
        self,
        keys: KeyCache,
        *,
        requests_per_second: float,
        open_to_loopback: bool,
        key_limiter: RateLimiter | None = None,
        network_limiter: RateLimiter | None = None,
    ) -> None:
        self._keys = keys
        self._requests_per_second = requests_per_second
        self._open_to_loopback = open_to_loopback
        # Apart: a flood from many networks must not evict the counts of keys.
        self._key_limiter = RateLimiter(most=_MOST_NAMES) if key_limiter is None else key_limiter
        self._network_limiter = (
            RateLimiter(most=_MOST_NAMES) if network_limiter is None else network_limiter
        )

    def authorize(self, request: Request, role: Role) -> Caller:
        """Authorize a request for an operation that requires `role`; return its sender.

        Raises:
            UnauthenticatedError: if it needs a valid key and carries none, or carries one in its
                URL.
            ForbiddenError: if the role of its key does not authorize the operation.
            RateLimitedError: if its key, or its network without a valid key, exceeds the limit.
            DatabaseUnavailableError: if the keys have not been read yet.
        """
        try:
            presented = _read_key(request)
            if presented is None and self._is_open_to(request):
                return LOOPBACK
            key = self._require_key(presented)
        except UnauthenticatedError:
            self._limit_network(request)
            raise
        self._limit_key(key)
        if role not in _AUTHORIZED_ROLES.get(key.role, frozenset()):
            raise ForbiddenError(
                f"this needs a key with the role {_format_roles(role)}, but this one has "
                f"{key.role!r}; use another key"
            )
        return Caller(f"{key.name} ({key.key_id})", key.role, has_key=True)

    def _is_open_to(self, request: Request) -> bool:
        """Return whether a request comes from this machine, and needs no key for that reason."""
        return (self._keys.is_empty or self._open_to_loopback) and is_loopback(request)

    def _require_key(self, presented: str | None) -> Key:
        if not self._keys.is_loaded:
            raise DatabaseUnavailableError(
                "keys must be read from the database before requests are authorized, but it has "
                "not answered yet; try again shortly"
            )
        key = None if presented is None else self._keys.find(presented)
        if key is None:
            raise UnauthenticatedError(
                "a request needs a valid API key, but "
                + ("this one has none" if presented is None else "this key is not valid")
                + "; send Authorization: Bearer kairos_..., created with kairos keys create"
            )
        return key

    def _limit_key(self, key: Key) -> None:
        rate = key.requests_per_second or self._requests_per_second
        seconds = self._key_limiter.take(key.key_id, rate)
        if seconds > 0:
            raise RateLimitedError(
                f"this key may send {rate:g} requests a second, but sent more; wait "
                f"{seconds:.2f} seconds",
                seconds=math.ceil(seconds),
            )

    def _limit_network(self, request: Request) -> None:
        rate = self._requests_per_second
        seconds = self._network_limiter.take(get_client_network(request), rate)
        if seconds > 0:
            raise RateLimitedError(
                f"a network may send {rate:g} requests a second without a valid API key, but this "
                f"one sent more; send a key, or wait {seconds:.2f} seconds",
                seconds=math.ceil(seconds),
            )


def _format_roles(role: Role) -> str:
    """Format the roles that authorize an operation that requires `role`."""
    return "'admin'" if role == "admin" else f"{role!r} or 'admin'"


def _read_key(request: Request) -> str | None:
    """Read the key that a request carries, valid or not; None for none.

    Raises:
        UnauthenticatedError: if it carries several, or one in its URL.
    """
    if contains_key(unquote(request.scope["query_string"].decode("latin-1"))):
        raise UnauthenticatedError(
            "a key is sent in a header, but this one is in the URL, which proxies and browsers "
            "record; revoke it with kairos keys revoke, and send the next as Authorization: "
            "Bearer kairos_..."
        )
    bearers = request.headers.getlist("authorization")
    own = request.headers.getlist("x-api-key")
    if len(bearers) + len(own) > 1:
        # A proxy in front may have checked a different one.
        raise UnauthenticatedError(
            f"a request carries one key, but this one has {len(bearers) + len(own)} headers for "
            "it; send either Authorization or X-API-Key, once"
        )
    if own:
        return own[0]
    if not bearers:
        return None
    scheme, _, key = bearers[0].partition(" ")
    return key.strip(" ") if scheme.lower() == "bearer" else ""
