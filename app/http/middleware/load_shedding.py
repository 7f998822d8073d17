"""Load shedding before a request body is read."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import final

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.auth.caller_id import identify_caller
from app.errors import ServiceError
from app.http.problems import build_error_response
from app.observability.metrics import Metrics

_REFUSALS_PER_SECOND = 100.0
_MOST_PAUSE_SECONDS = 1.0
_MOST_CALLERS = 1024
_SHED = frozenset({429, 503})

_log = structlog.get_logger()


@final
class RefusalPace:
    """Spaces the refusals of each caller: by ten milliseconds, and up to a second late.

    A client that repeats a refused request at once, on each of its connections, would otherwise
    cause thousands of refusals a second, which take the interpreter from the accepted requests.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._next: OrderedDict[str, float] = OrderedDict()

    def take_pause(self, caller: str) -> float:
        """Return the seconds by which to delay a refusal now."""
        now = self._clock()
        due = min(max(self._next.pop(caller, now), now), now + _MOST_PAUSE_SECONDS)
        self._next[caller] = due + 1 / _REFUSALS_PER_SECOND
        while len(self._next) > _MOST_CALLERS:
            self._next.popitem(last=False)
        return due - now


@final
class LoadSheddingMiddleware:
    """Refuses requests for which a thread pool has no capacity, before their body is read.

    Under overload most requests take this path, so it must cost next to nothing: it counts them,
    and logs their number once a second. A client gets many refusals one after the other.
    """

    def __init__(
        self,
        app: ASGIApp,
        capacity_checks: Mapping[tuple[str, str], Callable[[Scope], None]],
        metrics: Metrics,
    ) -> None:
        """Wrap an application.

        Args:
            capacity_checks: by method and path, a function that raises a `ServiceError` if there
                is no capacity for the request of a scope.
        """
        self._app = app
        self._capacity_checks = capacity_checks
        self._metrics = metrics
        self._pace = RefusalPace()
        self._unlogged = 0
        self._logged_at = 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle the request, or refuse it if there is no capacity."""
        check = None
        if scope["type"] == "http":
            check = self._capacity_checks.get((scope["method"], scope["path"]))
        if check is not None:
            send = self._pace_refusals(scope, send)
            try:
                check(scope)
            except ServiceError as error:
                self._count(scope, error)
                await build_error_response(scope, error)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _pace_refusals(self, scope: Scope, send: Send) -> Send:
        async def pace_and_send(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] in _SHED:
                pause = self._pace.take_pause(identify_caller(scope))
                if pause > 0:
                    await asyncio.sleep(pause)
            await send(message)

        return pace_and_send

    def _count(self, scope: Scope, error: ServiceError) -> None:
        self._metrics.requests.labels(scope["method"], scope["path"], str(error.status)).inc()
        if error.shed_reason is not None:
            self._metrics.shed_requests.labels(error.shed_reason).inc()
        self._unlogged += 1
        if time.monotonic() - self._logged_at >= 1:
            _log.warning("requests_shed", requests=self._unlogged, error=str(error))
            self._unlogged, self._logged_at = 0, time.monotonic()
