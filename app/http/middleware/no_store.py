"""Responses that no cache may keep."""

from typing import final

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send


@final
class NoStoreMiddleware:
    """Adds `Cache-Control: no-store` to responses without that header.

    Histories, recommendations and problems are about users and callers. A response that may be
    cached has a `Cache-Control` of its own, as the dashboard's files do.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle the request, and complete the headers of its response."""

        async def send_with_policy(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).setdefault("Cache-Control", "no-store")
            await send(message)

        await self._app(scope, receive, send_with_policy if scope["type"] == "http" else send)
