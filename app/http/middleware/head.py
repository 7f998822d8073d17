"""HEAD requests."""

from typing import final

from starlette.types import ASGIApp, Message, Receive, Scope, Send


@final
class HeadMiddleware:
    """Serves HEAD for every path that serves GET: the same headers without a body."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a HEAD request as GET, and drop the body."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return

        async def send_without_body(message: Message) -> None:
            empty = {"body": b""} if message["type"] == "http.response.body" else {}
            await send({**message, **empty})

        get_scope = {**scope, "method": "GET"}
        try:
            await self._app(get_scope, receive, send_without_body)
        finally:
            # Outer middleware reads the matched route from the original scope.
            scope.update({key: get_scope[key] for key in ("route", "endpoint") if key in get_scope})
