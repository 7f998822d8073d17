"""The size limit of request bodies."""

from typing import final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.errors import BodyTooLargeError


@final
class BodyLimitMiddleware:
    """Raises `BodyTooLargeError` for a body beyond the limit, by its Content-Length or by the
    bytes received.
    """

    def __init__(self, app: ASGIApp, max_bytes: int) -> None:
        self._app = app
        self._max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle the request with a limited body."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        declared = _parse_declared_length(scope)
        received = 0

        async def receive_up_to_limit() -> Message:
            nonlocal received
            if declared > self._max_bytes:
                raise self._build_error(str(declared))
            message = await receive()
            received += len(message.get("body", b""))
            if received > self._max_bytes:
                raise self._build_error(f"at least {received}")
            return message

        await self._app(scope, receive_up_to_limit, send)

    def _build_error(self, size: str) -> BodyTooLargeError:
        return BodyTooLargeError(
            f"a body holds at most {self._max_bytes} bytes, but this one has {size}; "
            "send it in parts"
        )


def _parse_declared_length(scope: Scope) -> int:
    """Parse the declared length of a body in bytes; 0 if it is not declared or not a number."""
    try:
        return int(Headers(scope=scope).get("content-length", "0"))
    except ValueError:
        return 0
