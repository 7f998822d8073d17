"""Request metrics and the request log."""

import time
from typing import final

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.observability.metrics import Metrics

UNMATCHED = "unmatched"

# Requested every few seconds, and of interest only when debugging.
_PROBES = frozenset({"/health/live", "/health/ready", "/metrics"})
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

_log = structlog.get_logger()


@final
class MetricsMiddleware:
    """Counts, times and logs every request by its route template, never by its path."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle the request, and record its status and duration."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        status = 500

        async def send_and_note_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, send_and_note_status)
        finally:
            seconds = time.perf_counter() - began
            method = scope["method"] if scope["method"] in _METHODS else "other"
            route = _get_route_label(scope)
            self._metrics.requests.labels(method, route, str(status)).inc()
            self._metrics.request_seconds.labels(method, route).observe(seconds)
            log = _log.debug if route in _PROBES else _log.info
            log("request", method=method, route=route, status=status, seconds=round(seconds, 6))


def _get_route_label(scope: Scope) -> str:
    """Return the template of the matched route: as many values as there are routes."""
    if "route" in scope:
        # The label's values are a contract with operators' dashboards and alerts.
        return str(scope["route"].path).replace(":id}", ":path}")
    # The route of /openapi.json sets no `route` and has no parameters: the path is the
    # template.
    return str(scope["path"]) if "endpoint" in scope else UNMATCHED
