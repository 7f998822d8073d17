"""Load shedding before a request body is read."""

import time
from collections.abc import Callable, Mapping
from typing import final

import structlog
from starlette.types import ASGIApp, Receive, Scope, Send

from app.errors import ServiceError
from app.http.problems import build_error_response
from app.observability.metrics import Metrics

_log = structlog.get_logger()


@final
class LoadSheddingMiddleware:
    """Refuses requests for which a thread pool has no capacity, before their body is read.

    Under overload most requests take this path, so it must cost next to nothing: it counts them,
    and logs their number once a second.
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
        self._unlogged = 0
        self._logged_at = 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle the request, or refuse it if there is no capacity."""
        check = None
        if scope["type"] == "http":
            check = self._capacity_checks.get((scope["method"], scope["path"]))
        if check is not None:
            try:
                check(scope)
            except ServiceError as error:
                self._count(scope, error)
                await build_error_response(scope, error)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _count(self, scope: Scope, error: ServiceError) -> None:
        self._metrics.requests.labels(scope["method"], scope["path"], str(error.status)).inc()
        if error.shed_reason is not None:
            self._metrics.shed_requests.labels(error.shed_reason).inc()
        self._unlogged += 1
        if time.monotonic() - self._logged_at >= 1:
            _log.warning("requests_shed", requests=self._unlogged, error=str(error))
            self._unlogged, self._logged_at = 0, time.monotonic()
