"""Draining of request bodies that no handler has read."""

import asyncio
from contextlib import suppress
from typing import final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_DRAIN_SECONDS = 1.0


@final
class BodyDrainMiddleware:
    """Reads the rest of a request body before the response ends, if the connection is to close.

    A connection that is closed over unread bytes is reset, and the reset may overtake the response:
    a proxy would report a broken connection instead of the refusal.
    """

    def __init__(self, app: ASGIApp, max_bytes: int) -> None:
        self._app = app
        self._max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle the request, and drain its body if needed."""
        if scope["type"] != "http" or not _expects_body(scope):
            await self._app(scope, receive, send)
            return
        is_read, closes = False, _requests_close(scope)

        async def receive_and_track() -> Message:
            nonlocal is_read
            message = await receive()
            is_read = not message.get("more_body", False)
            return message

        async def send_after_drain(message: Message) -> None:
            nonlocal closes
            if message["type"] == "http.response.start":
                closes = closes or Headers(raw=message["headers"]).get("connection") == "close"
            elif closes and not is_read and not message.get("more_body", False):
                await self._drain(receive)
            await send(message)

        await self._app(scope, receive_and_track, send_after_drain)

    async def _drain(self, receive: Receive) -> None:
        received = 0
        with suppress(TimeoutError):
            async with asyncio.timeout(_DRAIN_SECONDS):
                while received <= self._max_bytes:
                    message = await receive()
                    received += len(message.get("body", b""))
                    if not message.get("more_body", False):
                        return


def _expects_body(scope: Scope) -> bool:
    """Return whether the client is sending a body; False if it waits for `100 Continue`."""
    headers = Headers(scope=scope)
    if "expect" in headers:
        return False
    return headers.get("content-length", "0") != "0" or "transfer-encoding" in headers


def _requests_close(scope: Scope) -> bool:
    """Return whether the connection closes after the response by the client's choice."""
    return scope["http_version"] == "1.0" or (
        Headers(scope=scope).get("connection", "").lower() == "close"
    )
