"""Routes that require a key: the role is part of the route, checked before the body is read."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, ClassVar

from fastapi import Request, Response
from starlette.routing import Match
from starlette.types import Scope

from app.auth.access import Caller
from app.auth.caller_id import get_body_size, identify_caller
from app.auth.key_cache import Role
from app.context import AppContext
from app.http.paths import keep_encoded_slashes
from app.http.requests import StrictRoute
from app.inference.requester import Requester, requester

ROLE_EXTENSION = "x-role"
"""The field of an OpenAPI operation that holds the role it requires."""


class AuthorizedRoute(StrictRoute):
    """A route for callers of one role, which the subclasses below set.

    Attributes:
        is_demo_read: whether the demo shows it to requests without a token.
    """

    role: ClassVar[Role]
    is_demo_read: ClassVar[bool] = False

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
            request.state.caller = context.access_control.authorize(
                request, self.role, is_demo_read=self.is_demo_read
            )
            requester.set(
                Requester(
                    identify_caller(request.scope),
                    get_body_size(request.scope),
                    partial(_wait_for_disconnect, request),
                )
            )
            return await handle(request)

        return authorize_and_handle


async def _wait_for_disconnect(request: Request) -> None:
    """Return when the client of a request whose body is read has gone."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


class ReadRoute(AuthorizedRoute):
    """A route for queries."""

    role = "read"


class DemoReadRoute(ReadRoute):
    """A route for queries that the demo shows to requests without a token.

    It neither lists users nor returns what is stored of one as such.
    """

    is_demo_read = True


class IngestRoute(AuthorizedRoute):
    """A route that stores events or items."""

    role = "ingest"


class AdminRoute(AuthorizedRoute):
    """A route for operators."""

    role = "admin"


# Asynchronous although it awaits nothing: FastAPI runs a plain function on a thread.
async def get_caller(request: Request) -> Caller:
    """Return the caller that an authorized route has identified."""
    caller: Caller = request.state.caller
    return caller
