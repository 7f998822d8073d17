"""Routes that need a key: the role is part of the route, and is checked before the body is read."""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, ClassVar

from fastapi import APIRouter, FastAPI, Request, Response

from app.bodies import JsonRoute
from app.keyring import Role
from app.parts import Parts
from app.problems import MEDIA_TYPE


class GuardedRoute(JsonRoute):
    """A route that lets in callers of one role; choose one of the three below."""

    role: ClassVar[Role]

    def get_route_handler(self) -> Callable[[Request], Awaitable[Response]]:  # type: ignore[override]
        """Ask who is there first."""
        answer = super().get_route_handler()

        async def admit_then_answer(request: Request) -> Response:
            parts: Parts = request.app.state.parts
            request.state.caller = parts.gate.admit(request, self.role)
            return await answer(request)

        return admit_then_answer


class ReadRoute(GuardedRoute):
    """For those who ask and look."""

    role = "read"


class IngestRoute(GuardedRoute):
    """For those who send events and items."""

    role = "ingest"


class AdminRoute(GuardedRoute):
    """For those who run the service."""

    role = "admin"


def describe_keys(app: FastAPI, routers: Iterable[APIRouter]) -> None:
    """Say in the API's description which operations of these routers need a key, of which role."""
    derive = app.openapi
    roles = {
        (route.path_format, method.lower()): route.role
        for router in routers
        for route in router.routes
        if isinstance(route, GuardedRoute)
        for method in route.methods or ()
    }

    def openapi() -> dict[str, Any]:
        description = derive()
        schemes = description["components"].setdefault("securitySchemes", {})
        if "ApiKey" not in schemes:
            schemes["ApiKey"] = {
                "type": "http",
                "scheme": "bearer",
                "description": "An API key; X-API-Key carries one, too. Where none was ever made, "
                "the service answers its own machine without.",
            }
            for (path, method), role in roles.items():
                _describe(description["paths"][path][method], role)
        return description

    app.openapi = openapi  # type: ignore[method-assign]


def _describe(operation: dict[str, Any], role: Role) -> None:
    operation["security"] = [{"ApiKey": []}]
    operation["x-role"] = role
    problem = {"schema": {"$ref": "#/components/schemas/Problem"}}
    answers = {
        "401": "`unauthenticated`: an API key is needed",
        "403": f"`forbidden`: the key's role is neither {role!r} nor 'admin'",
        "429": "`rate_limited`: too many requests with this key",
    }
    for status, told in answers.items():
        answer = {"description": told, "content": {MEDIA_TYPE: problem}}
        operation["responses"].setdefault(status, answer)
    operation["responses"] = dict(sorted(operation["responses"].items()))
