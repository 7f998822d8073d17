"""Routes that require a key: the role is part of the route, checked before the body is read."""

from collections.abc import Awaitable, Callable
from typing import Any, ClassVar

from fastapi import Request, Response
from starlette.routing import Match
from starlette.types import Scope

from app.auth.key_cache import Role
from app.context import AppContext
from app.http.paths import keep_encoded_slashes
from app.http.requests import StrictRoute

ROLE_EXTENSION = "x-role"
"""The field of an OpenAPI operation that holds the role it requires."""


class AuthorizedRoute(StrictRoute):
    """A route for callers of one role; the three subclasses below set it."""

    role: ClassVar[Role]

    def __init__(self, *args: Any, openapi_extra: dict[str, Any] | None = None, **kwargs: Any):
        # As part of the operation itself, so that no operation's description can lack it.
        extra = {**(openapi_extra or {}), ROLE_EXTENSION: self.role}
        super().__init__(*args, openapi_extra=extra, **kwargs)

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Match the path, with percent-encoded slashes as part of an id."""
        return super().matches(keep_encoded_slashes(scope, self))

    def get_route_handler(self) -> Callable[[Request], Awaitable[Response]]:  # type: ignore[override]
        """Authorize the request before anything else."""
        handle = super().get_route_handler()

        async def authorize_and_handle(request: Request) -> Response:
            context: AppContext = request.app.state.context
            request.state.caller = context.access_control.authorize(request, self.role)
            return await handle(request)

        return authorize_and_handle


class ReadRoute(AuthorizedRoute):
    """A route for queries."""

    role = "read"


class IngestRoute(AuthorizedRoute):
    """A route that stores events or items."""

    role = "ingest"


class AdminRoute(AuthorizedRoute):
    """A route for operators."""

    role = "admin"
