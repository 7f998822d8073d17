"""Routes that need a key: the role is part of the route, and is checked before the body is read."""

from collections.abc import Awaitable, Callable
from typing import Any, ClassVar

from fastapi import FastAPI, Request, Response

from app.auth.key_cache import Role
from app.context import AppContext
from app.http.problems import MEDIA_TYPE
from app.http.requests import JsonRoute

_ROLE = "x-role"
_CHALLENGE = {
    "WWW-Authenticate": {
        "description": "The scheme of the key: `Bearer`.",
        "schema": {"type": "string"},
    }
}
_RETRY_AFTER = {
    "Retry-After": {
        "description": "Seconds after which to try again.",
        "schema": {"type": "integer"},
    }
}


class AuthorizedRoute(JsonRoute):
    """A route that lets in callers of one role; choose one of the three below."""

    role: ClassVar[Role]

    def __init__(self, *args: Any, openapi_extra: dict[str, Any] | None = None, **kwargs: Any):
        # With the operation itself, so that the description of none can miss it.
        told = {**(openapi_extra or {}), _ROLE: self.role}
        super().__init__(*args, openapi_extra=told, **kwargs)

    def get_route_handler(self) -> Callable[[Request], Awaitable[Response]]:  # type: ignore[override]
        """Ask who is there first."""
        answer = super().get_route_handler()

        async def admit_then_answer(request: Request) -> Response:
            context: AppContext = request.app.state.context
            request.state.caller = context.access_control.authorize(request, self.role)
            return await answer(request)

        return admit_then_answer


class ReadRoute(AuthorizedRoute):
    """For those who ask and look."""

    role = "read"


class IngestRoute(AuthorizedRoute):
    """For those who send events and items."""

    role = "ingest"


class AdminRoute(AuthorizedRoute):
    """For those who run the service."""

    role = "admin"


def describe_authentication(app: FastAPI) -> None:
    """Say in the API's description which operations need a key, and how they refuse without."""
    derive = app.openapi

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
            for operations in description["paths"].values():
                for operation in operations.values():
                    if _ROLE in operation:
                        _describe(operation)
        return description

    app.openapi = openapi  # type: ignore[method-assign]


def _describe(operation: dict[str, Any]) -> None:
    operation["security"] = [{"ApiKey": []}]
    reached = " or ".join(f"'{role}'" for role in dict.fromkeys((operation[_ROLE], "admin")))
    answers = {
        "401": _refusal("`unauthenticated`: a valid API key is needed", _CHALLENGE),
        "403": _refusal(f"`forbidden`: the role of the key must be {reached}"),
        "429": _refusal("`rate_limited`: too many requests with this key", _RETRY_AFTER),
    }
    operation["responses"] = dict(sorted({**operation["responses"], **answers}.items()))


def _refusal(told: str, headers: dict[str, Any] | None = None) -> dict[str, Any]:
    problem = {"schema": {"$ref": "#/components/schemas/Problem"}}
    answer: dict[str, Any] = {"description": told, "content": {MEDIA_TYPE: problem}}
    return answer if headers is None else {**answer, "headers": headers}
