"""Every failure as an RFC 9457 problem document, and how OpenAPI describes them."""

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
    ItemNotFoundError,
    MalformedJsonError,
    ModelNotFoundError,
    ModelRefusedError,
    ModelSaysNoTimeError,
    NoItemSpaceError,
    NoModelError,
    NotFoundError,
    NothingToRollBackError,
    OverloadedError,
    ServiceError,
    StoreUnavailableError,
    UnprocessableError,
    UnsupportedMediaTypeError,
)
from app.http import validation_errors as rules

MEDIA_TYPE = "application/problem+json"
_SHOWN_ERRORS = 20
_METHODS = ("DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT")

_log = structlog.get_logger()


class BrokenRule(BaseModel):
    """One rule that a request breaks."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    where: str
    """The part of the request: a JSON pointer into the body, or `query.name`, `path.name`."""
    code: str
    """The rule, stable."""
    message: str
    """The rule, in words."""


class Problem(BaseModel):
    """What went wrong with a request (RFC 9457)."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    type: str
    """The kind of problem, as a URN: `urn:kairos:problem:` and the code."""
    title: str
    """The kind of problem, in words."""
    status: int
    """The HTTP status of the answer."""
    detail: str
    """The rule that was broken, the value that broke it, and the remedy."""
    code: str
    """Stable: programs may compare it."""
    request_id: str
    """The request, as the service's log knows it; also in the header `X-Request-ID`."""
    errors: list[BrokenRule] | None = None
    """With status 422: every rule the request breaks, at most 20 of them."""


def problem_response(
    scope: Mapping[str, Any],
    *,
    status: int,
    code: str,
    title: str,
    detail: str,
    errors: list[dict[str, str]] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """A problem document as an answer to the request of `scope`."""
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


def service_problem(scope: Mapping[str, Any], error: ServiceError) -> Response:
    """The answer to a request that failed with `error`."""
    headers = {} if error.retry_after is None else {"Retry-After": str(error.retry_after)}
    if error.status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        # The rest of the body is not going to be read.
        headers["Connection"] = "close"
    if error.status == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = 'Bearer realm="kairos"'
    return problem_response(
        scope,
        status=error.status,
        code=error.code,
        title=error.title,
        detail=str(error),
        headers=headers,
    )


def crash_problem(scope: Mapping[str, Any]) -> Response:
    """The answer to a request that failed in a way nobody foresaw."""
    return problem_response(
        scope,
        status=500,
        code="internal_error",
        title="the service failed",
        detail="the request met a defect of the service, which its log describes under this "
        "request id; report it with the id",
    )


def install_exception_handlers(app: FastAPI) -> None:
    """Answer every failure of `app` with a problem document."""
    app.add_exception_handler(ServiceError, _answer_service_error)
    app.add_exception_handler(RequestValidationError, _answer_broken_rules)
    app.add_exception_handler(HTTPException, _answer_http_exception)
    app.add_exception_handler(ClientDisconnect, _answer_nobody)


async def _answer_service_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, ServiceError)
    if isinstance(error, OverloadedError):
        request.app.state.context.metrics.shed_requests.labels(error.pool).inc()
    elif isinstance(error, DatabaseUnavailableError):
        _log.warning("database_unavailable", error=str(error.__cause__))
    return service_problem(request.scope, error)


async def _answer_broken_rules(request: Request, failure: Exception) -> Response:
    assert isinstance(failure, RequestValidationError)
    errors = failure.errors()
    broken = [
        {
            "where": _where(error["loc"]),
            "code": str(error["type"]),
            "message": rules.rule(error),
        }
        for error in errors[:_SHOWN_ERRORS]
    ]
    shown = rules.shown(errors[0].get("input"))
    return problem_response(
        request.scope,
        status=UnprocessableError.status,
        code=UnprocessableError.code,
        title=UnprocessableError.title,
        detail=f"{broken[0]['where']}: {broken[0]['message']}, but got {shown}; "
        "see this operation in /docs",
        errors=broken,
    )


async def _answer_http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == HTTPStatus.NOT_FOUND:
        return service_problem(
            request.scope,
            NotFoundError(
                "a path must be that of a resource, but nothing is at "
                f"{request.url.path[:200]!r}; /docs lists those there are"
            ),
        )
    status = HTTPStatus(error.status_code)
    detail, headers = str(error.detail), error.headers
    if status is HTTPStatus.METHOD_NOT_ALLOWED:
        allowed = ", ".join(_methods_of(request))
        headers = {"Allow": allowed}
        detail = f"this path answers {allowed}, but got {request.method[:20]}; see /docs"
    return problem_response(
        request.scope,
        status=status,
        code=status.name.lower(),
        title=status.phrase.lower(),
        detail=detail,
        headers=headers,
    )


def _methods_of(request: Request) -> list[str]:
    """What the path of a request can be asked with; the route that refused knows its own only."""

    def is_answered(method: str) -> bool:
        # HEAD is answered as GET is.
        scope = {**request.scope, "method": "GET" if method == "HEAD" else method}
        return any(route.matches(scope)[0] is Match.FULL for route in request.app.routes)

    return [method for method in _METHODS if is_answered(method)]


async def _answer_nobody(request: Request, _: Exception) -> Response:
    return problem_response(
        request.scope,
        status=400,
        code="client_disconnected",
        title="the client went away",
        detail="a body must arrive whole, but the connection closed before; send it again",
    )


def _where(location: tuple[int | str, ...]) -> str:
    if location[:1] == ("body",):
        return "#" + rules.place(location[1:])
    return ".".join(map(str, location))


_DOCUMENTED: tuple[type[ServiceError], ...] = (
    MalformedJsonError,
    ItemNotFoundError,
    ModelNotFoundError,
    ModelRefusedError,
    ModelSaysNoTimeError,
    NoItemSpaceError,
    NothingToRollBackError,
    BodyTooLargeError,
    UnsupportedMediaTypeError,
    UnprocessableError,
    NoModelError,
    StoreUnavailableError,
    DatabaseUnavailableError,
    OverloadedError,
)


def problems(
    *errors: type[ServiceError], has_body: bool = False
) -> dict[int | str, dict[str, Any]]:
    """How OpenAPI describes the failures of an operation; any operation may break a rule."""
    expected = {UnprocessableError, *errors}
    if has_body:
        expected |= {MalformedJsonError, BodyTooLargeError, UnsupportedMediaTypeError}
    answers: dict[int | str, dict[str, Any]] = {}
    for error in (error for error in _DOCUMENTED if error in expected):
        answer = answers.setdefault(
            error.status,
            {
                "description": "",
                "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
            },
        )
        sentence = f"`{error.code}`: {error.title}"
        answer["description"] = "; ".join(filter(None, [answer["description"], sentence]))
        if error.retry_after is not None:
            answer["headers"] = {
                "Retry-After": {
                    "description": "Seconds after which to try again.",
                    "schema": {"type": "integer"},
                }
            }
    return answers


def describe_problems(app: FastAPI) -> None:
    """Add the schema of problem documents, which no route returns by itself, to the description."""
    derive = app.openapi

    def openapi() -> dict[str, Any]:
        description = derive()
        schemas = description["components"]["schemas"]
        if "Problem" not in schemas:
            problem = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
            schemas.update(problem.pop("$defs"))
            schemas["Problem"] = problem
            description["components"]["schemas"] = dict(sorted(schemas.items()))
        return description

    app.openapi = openapi  # type: ignore[method-assign]
