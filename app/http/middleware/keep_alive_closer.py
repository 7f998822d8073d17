"""Keep-alive connections during shutdown."""

from typing import final

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.serving.shutdown import ShutdownState


@final
class KeepAliveCloser:
    """Closes keep-alive connections with their next response while the process shuts down.

    Clients then reconnect to another replica before this one exits.
    """

    def __init__(self, app: ASGIApp, shutdown: ShutdownState) -> None:
        self._app = app
        self._shutdown = shutdown

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle the request, and add `Connection: close` to the response during shutdown."""

        async def send_and_close(message: Message) -> None:
            if message["type"] == "http.response.start" and self._shutdown.has_begun:
                MutableHeaders(scope=message)["Connection"] = "close"
            await send(message)

        await self._app(scope, receive, send_and_close if scope["type"] == "http" else send)
