"""Unexpected exceptions."""

import sys
from typing import final

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.http.problems import build_crash_response

_log = structlog.get_logger()


@final
class ErrorMiddleware:
    """Logs an unexpected exception and responds with a problem document instead of a bare 500.

    At start and stop, it takes the place of uvicorn's log of a failure: a traceback with the
    message of the exception, which may hold data of users.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle the request; respond with status 500 if that raises."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, _log_failure_of(send))
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        has_started = False

        async def send_and_note_start(message: Message) -> None:
            nonlocal has_started
            has_started = True
            await send(message)

        try:
            await self._app(scope, receive, send_and_note_start)
        except Exception:
            _log.exception("request_failed")
            if has_started:
                raise
            await build_crash_response(scope)(scope, receive, send)


def _log_failure_of(send: Send) -> Send:
    """Wrap `send` of a lifespan: log a failure with its exception, and withhold its text."""

    async def send_and_log(message: Message) -> None:
        if message["type"].endswith(".failed"):
            _log.error(
                "lifespan_failed", phase=message["type"].split(".")[1], exc_info=sys.exception()
            )
            message = {**message, "message": ""}
        await send(message)

    return send_and_log
