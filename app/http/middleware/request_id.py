"""Request ids."""

import random
import re
from typing import final

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

REQUEST_ID = "X-Request-ID"

_ACCEPTABLE_ID = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)


@final
class RequestIdMiddleware:
    """Adds a request id to logs, problem documents and response headers.

    A client's own `X-Request-ID` is kept if it is 1 to 64 letters, digits, dots, dashes or
    underscores.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle the request under its id."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        offered = Headers(scope=scope).get(REQUEST_ID, "")
        request_id = offered if _ACCEPTABLE_ID.fullmatch(offered) else _draw_id()
        scope.setdefault("state", {})["request_id"] = request_id

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)[REQUEST_ID] = request_id
            await send(message)

        with structlog.contextvars.bound_contextvars(request_id=request_id):
            await self._app(scope, receive, send_with_id)


def _draw_id() -> str:
    """Draw an id of 32 hexadecimal digits; unlike the operating system's, it may be guessed."""
    # A call of the operating system releases the interpreter, which other threads then keep for
    # half a millisecond: with busy threads, it was the costliest line of the event loop.
    return f"{random.getrandbits(128):032x}"
