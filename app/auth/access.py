"""Who may come in, and how often: keys, roles and limits, decided before a body is read."""

import math
from dataclasses import dataclass
from typing import final
from urllib.parse import unquote

from starlette.requests import Request

from app.auth.key_cache import Key, KeyCache, Role, contains_key
from app.auth.loopback import client_network, is_loopback
from app.auth.rate_limiter import RateLimiter
from app.errors import (
    DatabaseUnavailableError,
    ForbiddenError,
    RateLimitedError,
    UnauthenticatedError,
)

_REACH: dict[str, frozenset[Role]] = {
    "read": frozenset({"read"}),
    "ingest": frozenset({"ingest"}),
    "admin": frozenset({"read", "ingest", "admin"}),
}
_MOST_BUCKETS = 4096


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sent a request.

    Attributes:
        name: as the audit trail names them.
        role: that of their key; `admin` for this machine itself, which needs none.
        has_key: whether they showed a key.
    """

    name: str
    role: Role
    has_key: bool


LOOPBACK = Caller("loopback", "admin", has_key=False)
"""This machine itself, where the service is open to it."""


@final
class AccessControl:
    """Lets requests in by their key.

    Without any key ever made the service answers its own machine only: closed unless opened. Those
    who are turned away for want of a valid key are limited, too, by the network they come from; it
    takes nothing from callers with a key who come from there.

    Args:
        requests_per_second: of each key that has no limit of its own, and of each network's
            requests without a valid key.
        open_to_loopback: whether this machine itself needs no key even where keys were made.
        of_keys: the buckets of the keys.
        of_networks: the buckets of networks.
    """

    def __init__(
        self,
        keys: KeyCache,
        *,
        requests_per_second: float,
        open_to_loopback: bool,
        of_keys: RateLimiter | None = None,
        of_networks: RateLimiter | None = None,
    ) -> None:
        self._keys = keys
        self._requests_per_second = requests_per_second
        self._open_to_loopback = open_to_loopback
        # Apart: a flood from many networks must not make the service forget what keys have used.
        self._of_keys = RateLimiter(most=_MOST_BUCKETS) if of_keys is None else of_keys
        self._of_networks = RateLimiter(most=_MOST_BUCKETS) if of_networks is None else of_networks

    def authorize(self, request: Request, role: Role) -> Caller:
        """Who sent a request for something that needs `role`.

        Raises:
            UnauthenticatedError: if it carries no valid key, and needs one, or shows it in its URL.
            ForbiddenError: if its key's role does not reach so far.
            RateLimitedError: if its key, or those without a valid one, ask too often.
            DatabaseUnavailableError: if the keys could not be read yet.
        """
        try:
            presented = _presented(request)
            if presented is None and self._opens_to(request):
                return LOOPBACK
            key = self._require_key(presented)
        except UnauthenticatedError:
            self._require_patience(request)
            raise
        self._require_allowance(key)
        if role not in _REACH.get(key.role, frozenset()):
            raise ForbiddenError(
                f"this needs a key with the role {_named(role)}, but this one has "
                f"{key.role!r}; use another key"
            )
        return Caller(f"{key.name} ({key.key_id})", key.role, has_key=True)

    def _opens_to(self, request: Request) -> bool:
        """Whether a request without a key is this machine's own, and may come in as such."""
        return (self._keys.is_empty or self._open_to_loopback) and is_loopback(request)

    def _require_key(self, presented: str | None) -> Key:
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
        return key

    def _require_allowance(self, key: Key) -> None:
        rate = key.requests_per_second or self._requests_per_second
        seconds = self._of_keys.take(key.key_id, rate)
        if seconds > 0:
            raise RateLimitedError(
                f"this key may ask {rate:g} times a second, but asked more often; wait "
                f"{seconds:.2f} seconds",
                seconds=math.ceil(seconds),
            )

    def _require_patience(self, request: Request) -> None:
        rate = self._requests_per_second
        seconds = self._of_networks.take(client_network(request), rate)
        if seconds > 0:
            raise RateLimitedError(
                f"requests without a valid API key may come {rate:g} times a second from one "
                f"network, but came more often; send a key, or wait {seconds:.2f} seconds",
                seconds=math.ceil(seconds),
            )


def _named(role: Role) -> str:
    """The roles that open what needs `role`."""
    return "'admin'" if role == "admin" else f"{role!r} or 'admin'"


def _presented(request: Request) -> str | None:
    """The key that a request carries, valid or not.

    Raises:
        UnauthenticatedError: if it carries several, or one where everybody between may read it.
    """
    if contains_key(unquote(request.scope["query_string"].decode("latin-1"))):
        raise UnauthenticatedError(
            "a key is sent in a header, but this one is in the URL, which proxies and browsers "
            "write down; revoke it with kairos keys revoke, and send the next as Authorization: "
            "Bearer kairos_..."
        )
    bearers = request.headers.getlist("authorization")
    own = request.headers.getlist("x-api-key")
    if len(bearers) + len(own) > 1:
        # Whatever stands in front may have looked at another of them than we would.
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
