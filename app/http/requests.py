"""JSON request bodies: read once, parsed strictly, refused with a distinct error per cause."""

import email.message
from collections.abc import Awaitable, Callable
from typing import Any

import orjson
from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.types import Receive, Scope

from app.errors import MalformedJsonError, UnsupportedMediaTypeError


class _ParsedRequest(Request):
    """A request whose body is read and parsed already."""

    def __init__(self, scope: Scope, receive: Receive, body: bytes, value: object) -> None:
        super().__init__(scope, receive)
        self._body = body
        self._value = value

    async def json(self) -> Any:
        """Parse the body."""
        return self._value


class JsonRoute(APIRoute):
    """A route whose body is JSON, parsed by orjson.

    orjson refuses NaN, infinities, lone surrogates and deep nesting, which the standard library
    accepts. Of two equal keys the last applies.
    """

    def get_route_handler(self) -> Callable[[Request], Awaitable[Response]]:  # type: ignore[override]
        """Parse the body before FastAPI validates it."""
        handle = super().get_route_handler()
        if self.body_field is None:
            return handle

        async def parse_and_handle(request: Request) -> Response:
            _require_plain_json(request)
            body = await request.body()
            return await handle(_ParsedRequest(request.scope, request.receive, body, _parse(body)))

        return parse_and_handle


def _require_plain_json(request: Request) -> None:
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in {"identity", ""}:
        raise UnsupportedMediaTypeError(
            f"a body must not be compressed, but its Content-Encoding is {encoding[:40]!r}; "
            "send it as it is"
        )
    declared = request.headers.get("content-type", "")
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
