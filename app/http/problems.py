"""RFC 9457 problem documents for every failure, and their description in OpenAPI."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import orjson
import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.routing import Match

from app.errors import (
    BodyTooLargeError,
    DatabaseUnavailableError,
    DisconnectedError,
    ErasureLogError,
    ItemNotFoundError,
    MalformedJsonError,
    ModelNotFoundError,
    ModelRefusedError,
    NoEventTimeError,
    NoItemSpaceError,
    NoModelError,
    NotFoundError,
    NothingToRollBackError,
    OverloadedError,
    OverShareError,
    ServiceError,
    StoreUnavailableError,
    UnprocessableError,
    UnsupportedMediaTypeError,
)
from app.http import validation_errors as rules
from model.errors import format_error

MEDIA_TYPE = "application/problem+json"
_MOST_ERRORS = 20
_METHODS = ("DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT")

_log = structlog.get_logger()


class BrokenRule(BaseModel):
    """A rule that a request violates."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    where: str
    """The location in the request: a JSON pointer into the body, `query.name` or `path.name`."""
    code: str
    """The rule's stable name."""
    message: str
    """The rule, in words."""


class Problem(BaseModel):
    """A problem document (RFC 9457)."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    type: str
    """The kind of problem, as a URN: `urn:kairos:problem:` and the code."""
    title: str
    """The kind of problem, in words."""
    status: int
    """The HTTP status of the response."""
    detail: str
    """The violated rule, the value and the remedy."""
    code: str
    """The stable name of the kind of problem, for programs."""
    request_id: str
    """The id of the request in the service's log; also in the header `X-Request-ID`."""
    errors: list[BrokenRule] | None = None
    """With status 422: the violated rules, at most 20."""


def build_problem_response(
    scope: Mapping[str, Any],
    *,
    status: int,
    code: str,
    title: str,
    detail: str,
    errors: list[dict[str, str]] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Build a problem document as the response to the request of `scope`."""
    document: dict[str, Any] = {
        "type": f"urn:kairos:problem:{code}",
        "title": title,
        "status": status,
        "detail": detail,
        "code": code,
        "request_id": scope.get("state", {}).get("request_id", ""),
    }
    if errors:
        document["errors"] = errors
    return Response(
        orjson.dumps(document), int(status), headers=dict(headers or {}), media_type=MEDIA_TYPE
    )


def build_error_response(scope: Mapping[str, Any], error: ServiceError) -> Response:
    """Build the response to a request that failed with `error`."""
    headers = {} if error.retry_after is None else {"Retry-After": str(error.retry_after)}
    if error.status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        # The rest of the body is not read.
        headers["Connection"] = "close"
    if error.status == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = 'Bearer realm="kairos"'
    return build_problem_response(
        scope,
        status=error.status,
        code=error.code,
        title=error.title,
        detail=str(error),
        headers=headers,
    )


def build_crash_response(scope: Mapping[str, Any]) -> Response:
    """Build the response to a request that raised an unexpected exception."""
    return build_problem_response(
        scope,
        status=500,
        code="internal_error",
        title="the service failed",
        detail="the request raised an unexpected error, which the service's log describes under "
        "this request id; report it with the id",
    )


def install_exception_handlers(app: FastAPI) -> None:
    """Respond to every failure of `app` with a problem document."""
    app.add_exception_handler(ServiceError, _handle_service_error)
    app.add_exception_handler(RequestValidationError, _handle_validation_error)
    app.add_exception_handler(HTTPException, _handle_http_exception)
    app.add_exception_handler(ClientDisconnect, _handle_disconnect)


async def _handle_service_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, ServiceError)
    if error.shed_reason is not None:
        request.app.state.context.metrics.shed_requests.labels(error.shed_reason).inc()
    elif isinstance(error, DatabaseUnavailableError):
        _log.warning("database_unavailable", error=format_error(error))
    return build_error_response(request.scope, error)


async def _handle_validation_error(request: Request, failure: Exception) -> Response:
    assert isinstance(failure, RequestValidationError)
    errors = failure.errors()
    broken = [
        {
            "where": _format_location(error["loc"]),
            "code": str(error["type"]),
            "message": rules.describe_rule(error),
        }
        for error in errors[:_MOST_ERRORS]
    ]
    value = rules.abbreviate(errors[0].get("input"))
    return build_problem_response(
        request.scope,
        status=UnprocessableError.status,
        code=UnprocessableError.code,
        title=UnprocessableError.title,
        detail=f"{broken[0]['where']}: {broken[0]['message']}, but got {value}; "
        "see this operation in /docs",
        errors=broken,
    )


async def _handle_http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == HTTPStatus.NOT_FOUND:
        return build_error_response(
            request.scope,
            NotFoundError(
                "a path must be that of a resource, but nothing is at "
                f"{request.url.path[:200]!r}; /docs lists the paths, and a slash of an id is "
                "encoded as %2F"
            ),
        )
    status = HTTPStatus(error.status_code)
    detail, headers = str(error.detail), error.headers
    if status is HTTPStatus.METHOD_NOT_ALLOWED:
        allowed = ", ".join(_list_methods(request))
        headers = {"Allow": allowed}
        detail = f"this path accepts {allowed}, but got {request.method[:20]}; see /docs"
    return build_problem_response(
        request.scope,
        status=status,
        code=status.name.lower(),
        title=status.phrase.lower(),
        detail=detail,
        headers=headers,
    )


def _list_methods(request: Request) -> list[str]:
    """List the methods that the path of a request accepts, over all routes."""

    def is_accepted(method: str) -> bool:
        # HEAD is accepted wherever GET is.
        scope = {**request.scope, "method": "GET" if method == "HEAD" else method}
        return any(route.matches(scope)[0] is Match.FULL for route in request.app.routes)

    return [method for method in _METHODS if is_accepted(method)]


async def _handle_disconnect(request: Request, _: Exception) -> Response:
    return build_error_response(
        request.scope,
        DisconnectedError(
            "a body must arrive whole, but the connection closed before; send it again"
        ),
    )


def _format_location(location: tuple[int | str, ...]) -> str:
    if location[:1] == ("body",):
        return "#" + rules.format_json_pointer(location[1:])
    return ".".join(map(str, location))


_DOCUMENTED: tuple[type[ServiceError], ...] = (
    MalformedJsonError,
    DisconnectedError,
    ItemNotFoundError,
    ModelNotFoundError,
    ModelRefusedError,
    NoEventTimeError,
    NoItemSpaceError,
    NothingToRollBackError,
    BodyTooLargeError,
    UnsupportedMediaTypeError,
    UnprocessableError,
    OverShareError,
    NoModelError,
    ErasureLogError,
    StoreUnavailableError,
    DatabaseUnavailableError,
    OverloadedError,
)


def describe_problems(
    *errors: type[ServiceError], has_body: bool = False
) -> dict[int | str, dict[str, Any]]:
    """Describe the failures of an operation, for `responses` of a route.

    A violated rule (422) is among them for every operation.
    """
    expected = {UnprocessableError, *errors}
    if has_body:
        expected |= {MalformedJsonError, BodyTooLargeError, UnsupportedMediaTypeError}
    responses: dict[int | str, dict[str, Any]] = {}
    for error in (error for error in _DOCUMENTED if error in expected):
        response = responses.setdefault(
            error.status,
            {
                "description": "",
                "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
            },
        )
        sentence = f"`{error.code}`: {error.title}"
        response["description"] = "; ".join(filter(None, [response["description"], sentence]))
        if error.retry_after is not None:
            response["headers"] = {
                "Retry-After": {
                    "description": "Seconds after which to try again.",
                    "schema": {"type": "integer"},
                }
            }
    return responses
