"""What happens around every request: an id, a door, its measurements, a last resort, and a cap."""

import asyncio
import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import final
from uuid import uuid4

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.errors import BodyTooLargeError, OverloadedError, ServiceError
from app.http.problems import crash_problem, service_problem
from app.observability.metrics import Metrics
from app.serving.shutdown import ShutdownState

REQUEST_ID = "X-Request-ID"
UNMATCHED = "unmatched"

_ACCEPTABLE_ID = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)
# Asked for every few seconds, and of no interest unless something is being looked for.
_PROBES = frozenset({"/health/live", "/health/ready", "/metrics"})
_DRAIN_SECONDS = 1.0
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

_log = structlog.get_logger()


@final
class RequestIdMiddleware:
    """Gives every request an id: the caller's where it sent one, in logs, problems and answers."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on under its id."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        offered = Headers(scope=scope).get(REQUEST_ID, "")
        request_id = offered if _ACCEPTABLE_ID.fullmatch(offered) else uuid4().hex
        scope.setdefault("state", {})["request_id"] = request_id

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)[REQUEST_ID] = request_id
            await send(message)

        with structlog.contextvars.bound_contextvars(request_id=request_id):
            await self._app(scope, receive, send_with_id)


@final
class BodyDrainMiddleware:
    """Hears a body out before the answer ends, where a request is refused before its body is read.

    A connection that is closed over unread bytes is reset, and the reset may overtake the answer: a
    proxy would tell of a broken connection instead of the refusal.
    """

    def __init__(self, app: ASGIApp, max_bytes: int) -> None:
        self._app = app
        self._max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on; where its connection is to be closed, hear its body out first."""
        if scope["type"] != "http" or not _announces_a_body(scope):
            await self._app(scope, receive, send)
            return
        is_whole, closes = False, _asks_to_close(scope)

        async def receive_and_note() -> Message:
            nonlocal is_whole
            message = await receive()
            is_whole = not message.get("more_body", False)
            return message

        async def send_after_the_body(message: Message) -> None:
            nonlocal closes
            if message["type"] == "http.response.start":
                closes = closes or Headers(raw=message["headers"]).get("connection") == "close"
            elif closes and not is_whole and not message.get("more_body", False):
                await self._hear_out(receive)
            await send(message)

        await self._app(scope, receive_and_note, send_after_the_body)

    async def _hear_out(self, receive: Receive) -> None:
        received = 0
        with suppress(TimeoutError):
            async with asyncio.timeout(_DRAIN_SECONDS):
                while received <= self._max_bytes:
                    message = await receive()
                    received += len(message.get("body", b""))
                    if not message.get("more_body", False):
                        return


@final
class KeepAliveCloser:
    """Lets connections end with their next answer once the process is told to stop.

    Whoever holds one open then asks somebody else before this process is gone, not after.
    """

    def __init__(self, app: ASGIApp, leaving: ShutdownState) -> None:
        self._app = app
        self._leaving = leaving

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on; close the connection after its answer if the process leaves."""

        async def send_and_close(message: Message) -> None:
            if message["type"] == "http.response.start" and self._leaving.has_begun:
                MutableHeaders(scope=message)["Connection"] = "close"
            await send(message)

        await self._app(scope, receive, send_and_close if scope["type"] == "http" else send)


@final
class LoadSheddingMiddleware:
    """Turns requests away while what they need has no room, before their body is read.

    Where far more is asked than can be answered, this is what most requests meet: it must cost next
    to nothing. It counts them, and tells the log once a second how many there were.
    """

    def __init__(
        self, app: ASGIApp, rooms: Mapping[tuple[str, str], Callable[[], None]], metrics: Metrics
    ) -> None:
        """Stand at the door.

        Args:
            rooms: by method and path, what raises an error if there is no room.
        """
        self._app = app
        self._rooms = rooms
        self._metrics = metrics
        self._untold = 0
        self._told_at = 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer in its stead that there is no room."""
        require_capacity = None
        if scope["type"] == "http":
            require_capacity = self._rooms.get((scope["method"], scope["path"]))
        if require_capacity is not None:
            try:
                require_capacity()
            except ServiceError as error:
                self._count(scope, error)
                await service_problem(scope, error)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _count(self, scope: Scope, error: ServiceError) -> None:
        self._metrics.requests.labels(scope["method"], scope["path"], str(error.status)).inc()
        if isinstance(error, OverloadedError):
            self._metrics.shed_requests.labels(error.pool).inc()
        self._untold += 1
        if time.monotonic() - self._told_at >= 1:
            _log.warning("requests_shed", requests=self._untold, error=str(error))
            self._untold, self._told_at = 0, time.monotonic()


@final
class MetricsMiddleware:
    """Counts, times and logs every request by its route template, never by its path."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on and record its answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        status = 500

        async def send_noting_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, send_noting_status)
        finally:
            seconds = time.perf_counter() - began
            method = scope["method"] if scope["method"] in _METHODS else "other"
            route = _template(scope)
            self._metrics.requests.labels(method, route, str(status)).inc()
            self._metrics.request_seconds.labels(method, route).observe(seconds)
            say = _log.debug if route in _PROBES else _log.info
            say("request", method=method, route=route, status=status, seconds=round(seconds, 6))


def _template(scope: Scope) -> str:
    """The template of the route that answered: as many values as there are routes."""
    if "route" in scope:
        return str(scope["route"].path)
    # Of the routes that do not announce themselves (the documentation's) none has parameters, so
    # the path is the template.
    return str(scope["path"]) if "endpoint" in scope else UNMATCHED


@final
class HeadMiddleware:
    """Answers HEAD wherever GET is answered: the same headers, and no body."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, as if it asked for the body, too."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return

        async def send_without_body(message: Message) -> None:
            empty = {"body": b""} if message["type"] == "http.response.body" else {}
            await send({**message, **empty})

        asked = {**scope, "method": "GET"}
        try:
            await self._app(asked, receive, send_without_body)
        finally:
            # Those who count and log look for what answered.
            scope.update({name: asked[name] for name in ("route", "endpoint") if name in asked})


@final
class ErrorMiddleware:
    """Turns what nobody foresaw into a logged problem document; nothing leaves as a bare 500."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on; answer in its stead if it fails."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        has_started = False

        async def send_noting_start(message: Message) -> None:
            nonlocal has_started
            has_started = True
            await send(message)

        try:
            await self._app(scope, receive, send_noting_start)
        except Exception:
            _log.exception("request_failed")
            if has_started:
                raise
            await crash_problem(scope)(scope, receive, send)


@final
class BodyLimitMiddleware:
    """Refuses to read a body beyond the cap, whether its length was declared or is only found."""

    def __init__(self, app: ASGIApp, max_bytes: int) -> None:
        self._app = app
        self._max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with a body that ends in a refusal if it is too large."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        declared = _declared_length(scope)
        received = 0

        async def receive_up_to_the_cap() -> Message:
            nonlocal received
            if declared > self._max_bytes:
                raise self._refusal(str(declared))
            message = await receive()
            received += len(message.get("body", b""))
            if received > self._max_bytes:
                raise self._refusal(f"at least {received}")
            return message

        await self._app(scope, receive_up_to_the_cap, send)

    def _refusal(self, size: str) -> BodyTooLargeError:
        return BodyTooLargeError(
            f"a body holds at most {self._max_bytes} bytes, but this one has {size}; "
            "send it in parts"
        )


def _announces_a_body(scope: Scope) -> bool:
    """Whether a body is on its way; not where the client waits to be told to send it."""
    headers = Headers(scope=scope)
    if "expect" in headers:
        return False
    return headers.get("content-length", "0") != "0" or "transfer-encoding" in headers


def _asks_to_close(scope: Scope) -> bool:
    """Whether a request wants its connection closed after the answer."""
    return scope["http_version"] == "1.0" or (
        Headers(scope=scope).get("connection", "").lower() == "close"
    )


def _declared_length(scope: Scope) -> int:
    """What a request says of its body's length; 0 where it says nothing that makes sense."""
    try:
        return int(Headers(scope=scope).get("content-length", "0"))
    except ValueError:
        return 0
