"""Strict reading of requests: what would be ignored or misread is refused, each with its cause."""

import email.message
from collections.abc import Awaitable, Callable
from typing import Any

import orjson
from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.types import Receive, Scope

from app.errors import MalformedJsonError, UnsupportedMediaTypeError
from app.http.direct_calls import build_direct_call
from app.http.targets import list_query_parameters, require_known_parameters, require_utf8


class _ParsedRequest(Request):
    """A request whose body is read and parsed already."""

    def __init__(self, scope: Scope, receive: Receive, body: bytes, value: object) -> None:
        super().__init__(scope, receive)
        self._body = body
        self._value = value

    async def json(self) -> Any:
        """Parse the body."""
        return self._value


class StrictRoute(APIRoute):
    """A route that refuses what it would otherwise ignore.

    Bytes of the path or the query that are no UTF-8, unknown query parameters and repeated ones are
    violations of a rule. A body is JSON, parsed by orjson, which refuses NaN, infinities, lone
    surrogates and deep nesting; the standard library accepts them. Of two equal keys the last
    applies.
    """

    def __init__(
        self,
        path: str,
        endpoint: Callable[..., Any],
        *,
        operation_id: str | None = None,
        **kwargs: Any,
    ) -> None:
        # Generated clients name their methods after these, so functions keep their names.
        super().__init__(path, endpoint, operation_id=operation_id or endpoint.__name__, **kwargs)

    def get_route_handler(self) -> Callable[[Request], Awaitable[Response]]:  # type: ignore[override]
        """Check the target, and parse the body, before FastAPI validates them."""
        handle = super().get_route_handler()
        known = list_query_parameters(self.dependant)
        has_body = self.body_field is not None
        call_directly = build_direct_call(self.dependant)

        async def check_and_handle(request: Request) -> Response:
            require_utf8(request.scope)
            require_known_parameters(request.scope, known)
            if not has_body:
                return await handle(request)
            _require_plain_json(request)
            body = await request.body()
            value = _parse(body)
            if call_directly is not None:
                response = await call_directly(request, value)
                if response is not None:
                    return response
            return await handle(_ParsedRequest(request.scope, request.receive, body, value))

        return check_and_handle


def _require_plain_json(request: Request) -> None:
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in {"identity", ""}:
        raise UnsupportedMediaTypeError(
            f"a body must not be compressed, but its Content-Encoding is {encoding[:40]!r}; "
            "send it as it is"
        )
    declared = request.headers.get("content-type", "")
    if declared == "application/json":
        return
    header = email.message.Message()
    header["content-type"] = declared
    subtype = header.get_content_subtype()
    if header.get_content_maintype() != "application" or not (
        subtype == "json" or subtype.endswith("+json")
    ):
        raise UnsupportedMediaTypeError(
            f"a body must be declared as application/json, but its Content-Type is "
            f"{declared[:40]!r}; set the header"
        )


def _parse(body: bytes) -> object:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise MalformedJsonError(
            f"a body must be one JSON text in UTF-8, but {error.msg} at byte {error.pos}; "
            "NaN, infinities, lone surrogates and nesting beyond 1024 are not JSON here"
        ) from error
