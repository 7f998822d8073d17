"""Access control: keys, roles and rate limits, checked before a body is read."""

import math
from dataclasses import dataclass
from typing import final
from urllib.parse import unquote

from starlette.requests import Request

from app.auth.key_cache import Key, KeyCache, Role, contains_key
from app.auth.local_token import LOCAL_TOKEN_PREFIX, LocalToken
from app.auth.loopback import describe_remoteness, get_client_network, is_of_this_user
from app.auth.rate_limiter import RateLimiter
from app.auth.shared_limiter import SharedLimiter
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
MOST_NAMES = 4096
_SEND_KEY = "send Authorization: Bearer kairos_..., created with kairos keys create"


@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of a request.

    Attributes:
        name: the name in the audit trail.
        role: the role of the key; `admin` for a request with the local token.
        has_key: whether the request carried a key.
        user_prefix: what the ids of the users that the caller reaches begin with; None for all.
        may_list_users: whether the caller may list users.
    """

    name: str
    role: Role
    has_key: bool
    user_prefix: str | None = None
    may_list_users: bool = True

    def require_user(self, user_id: str | None) -> None:
        """Check that the caller reaches a user; None for a request that names none.

        Raises:
            ForbiddenError: if the id does not begin with the prefix of the caller's key.
        """
        prefix = self.user_prefix
        if user_id is not None and prefix is not None and not user_id.startswith(prefix):
            raise ForbiddenError(
                f"this key reaches users whose ids begin with {prefix!r}, but the request names "
                "another one; name one of those, or use another key"
            )

    def narrow_prefix(self, prefix: str) -> str:
        """Narrow a prefix of user ids down to the users that the caller may list.

        Raises:
            ForbiddenError: if the caller may list no users, or none of these.
        """
        if not self.may_list_users:
            raise ForbiddenError(
                "this key may not list users, but the request does; name a user, or use another key"
            )
        own = self.user_prefix or ""
        if own.startswith(prefix):
            return own
        self.require_user(prefix)
        return prefix


LOOPBACK = Caller("loopback", "admin", has_key=False)
"""The caller of a request with the local token of this process."""

DEMO_READER = Caller("demo", "read", has_key=False)
"""The caller of a request without a token for what the demo shows."""


@final
class AccessControl:
    """Authorizes requests by their key.

    Until a first key is created, the local token of the process takes the place of one, for
    requests from this machine itself. Requests without a valid key or token are rate-limited by
    network, apart from requests with one.

    Args:
        local_token: the token of this process.
        requests_per_second: the rate limit of each key without its own, and of each network's
            requests without a valid key.
        open_to_loopback: whether the local token is accepted even once keys exist.
        is_demo: whether programs of this user may make the demo's requests without a token.
        key_limiter: limits keys; by default those of this process alone.
        network_limiter: limits networks.

    Attributes:
        key_limiter: counts the requests of keys.
    """

    def __init__(
        self,
        keys: KeyCache,
        local_token: LocalToken,
        *,
        requests_per_second: float,
        open_to_loopback: bool,
        is_demo: bool = False,
        key_limiter: RateLimiter | SharedLimiter | None = None,
        network_limiter: RateLimiter | None = None,
    ) -> None:
        self._keys = keys
        self._local_token = local_token
        self._requests_per_second = requests_per_second
        self._open_to_loopback = open_to_loopback
        self._is_demo = is_demo
        # Apart: a flood from many networks must not evict the counts of keys.
        self.key_limiter = RateLimiter(most=MOST_NAMES) if key_limiter is None else key_limiter
        self._network_limiter = (
            RateLimiter(most=MOST_NAMES) if network_limiter is None else network_limiter
        )

    @property
    def accepts_local_token(self) -> bool:
        """Whether the local token takes the place of a key."""
        return self._keys.is_empty or self._open_to_loopback

    def authorize(self, request: Request, role: Role, *, is_demo_read: bool = False) -> Caller:
        """Authorize a request for an operation that requires `role`; return its sender.

        Args:
            is_demo_read: whether the demo shows the operation to requests without a token.

        Raises:
            UnauthenticatedError: if it needs a valid key and carries none, or carries one in its
                URL.
            ForbiddenError: if the role of its key does not authorize the operation.
            RateLimitedError: if its key, or its network without a valid key, exceeds the limit.
            DatabaseUnavailableError: if the keys have not been read yet.
        """
        try:
            presented = _read_key(request)
            if presented is None and is_demo_read and self._shows_demo_to(request):
                return DEMO_READER
            if presented is not None and presented.startswith(LOCAL_TOKEN_PREFIX):
                self._require_local_token(request, presented)
                return LOOPBACK
            key = self._require_key(request, presented)
        except UnauthenticatedError:
            self._limit_network(request)
            raise
        self._limit_key(key)
        if role not in _AUTHORIZED_ROLES.get(key.role, frozenset()):
            raise ForbiddenError(
                f"this needs a key with the role {_format_roles(role)}, but this one has "
                f"{key.role!r}; use another key"
            )
        return Caller(
            f"{key.name} ({key.key_id})",
            key.role,
            has_key=True,
            user_prefix=key.user_prefix,
            may_list_users=key.may_list_users,
        )

    def _shows_demo_to(self, request: Request) -> bool:
        return self._is_demo and self.accepts_local_token and is_of_this_user(request)

    def _require_local_token(self, request: Request, presented: str) -> None:
        if not self.accepts_local_token:
            self._require_loaded_keys()
            raise UnauthenticatedError(
                "the local token takes the place of a key until the first key exists, but keys "
                f"exist; {_SEND_KEY}"
            )
        remoteness = describe_remoteness(request)
        if remoteness is not None:
            raise UnauthenticatedError(
                f"the local token is accepted from this machine itself, but this request "
                f"{remoteness}; {_suggest(remoteness)}"
            )
        if not self._local_token.matches(presented):
            raise UnauthenticatedError(
                "the local token must be that of the running process, but this is another one's, "
                "or an earlier one's; kairos dashboard prints a link with the current one"
            )

    def _require_key(self, request: Request, presented: str | None) -> Key:
        self._require_loaded_keys()
        key = None if presented is None else self._keys.find(presented)
        if key is not None:
            return key
        if presented is None and self.accepts_local_token:
            remoteness = describe_remoteness(request)
            raise UnauthenticatedError(
                "a request needs a valid API key or, from this machine itself, the local token, "
                f"but this one has none and {remoteness or 'comes from this machine'}; "
                f"{_suggest(remoteness)}"
            )
        raise UnauthenticatedError(
            "a request needs a valid API key, but "
            + ("this one has none" if presented is None else "this key is not valid")
            + f"; {_SEND_KEY}"
        )

    def _require_loaded_keys(self) -> None:
        if not self._keys.is_loaded:
            raise DatabaseUnavailableError(
                "keys must be read from the database before requests are authorized, but it has "
                "not answered yet; try again shortly"
            )

    def _limit_key(self, key: Key) -> None:
        rate = key.requests_per_second or self._requests_per_second
        seconds = self.key_limiter.take(key.key_id, rate)
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


def _suggest(remoteness: str | None) -> str:
    """Suggest how to be admitted, by in what a request differs from one of this machine."""
    if remoteness is None:
        return (
            "open the link that kairos dashboard prints, or send the token of that link as "
            "Authorization: Bearer kairos_local_..."
        )
    if remoteness.startswith("is for the host"):
        return "call the service by one of these, with the local token"
    return _SEND_KEY


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
