"""Probes and metrics."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated, TypeVar

from fastapi import APIRouter, Depends, Response
from prometheus_client import CONTENT_TYPE_LATEST

from app.context import AppContext, get_context
from app.errors import ServiceError
from app.health.samples import collect_samples
from app.health.schemas import Liveness, ProcessMetrics, Readiness
from app.http.problems import describe_problems
from app.http.requests import StrictRoute
from app.http.responses import JsonResponse
from app.http.routes import ReadRoute
from app.observability.metrics import Metrics

Result = TypeVar("Result")

router = APIRouter(tags=["health"], route_class=StrictRoute)
metrics_router = APIRouter(prefix="/v1", tags=["health"], route_class=ReadRoute)


@router.get(
    "/health/live",
    summary="Liveness probe",
    response_model=Liveness,
    responses=describe_problems(),
)
async def live() -> JsonResponse:
    """Respond while the event loop runs. Restart a process that does not respond."""
    return JsonResponse(Liveness())


@router.get(
    "/health/ready",
    summary="Readiness probe",
    response_model=Readiness,
    responses={
        **describe_problems(),
        503: {"model": Readiness, "description": "A part is not ready; the response names it."},
    },
)
async def ready(context: Annotated[AppContext, Depends(get_context)]) -> JsonResponse:
    """Check the model, the database, the periodic tasks, and that no shutdown has begun.

    Send no traffic while the status is 503. Requests with an inline history need the model only.
    """
    # At once: a database that hangs is waited for up to the timeout.
    database, writes = await asyncio.gather(
        _describe_failure(context.database.check_reading()),
        _describe_failure(context.database.check_writing()),
    )
    parts = {
        "model": "ok",
        "database": database,
        "writes": writes,
        "tasks": _describe_needed_tasks(context),
        "process": "is shutting down; use another replica" if context.shutdown.has_begun else "ok",
    }
    has_model = True
    try:
        version = context.model_manager.require_current().version
        if faults := context.model_manager.faults:
            parts["model"] = f"serves {version}, but " + "; ".join(faults.values())
    except ServiceError as error:
        # A store that is not followed may be why there is none.
        has_model = False
        parts["model"] = "; ".join((str(error), *context.model_manager.faults.values()))
    # A model that serves in place of another is named, and serves.
    is_ready = has_model and {parts[part] for part in parts.keys() - {"model"}} == {"ok"}
    if parts["tasks"] == "ok":
        # Reported, though the process can do without them.
        parts["tasks"] = _describe_tasks(context.supervisor.list_failing(essential=False))
    return JsonResponse(
        Readiness("ready" if is_ready else "not_ready", **parts),
        status_code=200 if is_ready else 503,
    )


async def _describe_failure(check: Awaitable[None]) -> str:
    """Return the problem that a check finds; `ok` for none."""
    try:
        await check
    except ServiceError as error:
        return str(error)
    return "ok"


def _describe_needed_tasks(context: AppContext) -> str:
    failing = context.supervisor.list_failing(essential=True)
    if not failing and context.item_overlay.last_change is None:
        return "items: those of a model could not be read when it was opened; they are read again"
    return _describe_tasks(failing)


def _describe_tasks(failing: list[str]) -> str:
    if not failing:
        return "ok"
    return f"{', '.join(failing)}: failed in each of the last runs; see the service's log"


@router.get(
    "/metrics",
    summary="Metrics for Prometheus",
    response_class=Response,
    responses={
        200: {"content": {"text/plain": {"schema": {"type": "string"}}}},
        **describe_problems(),
    },
)
async def metrics(context: Annotated[AppContext, Depends(get_context)]) -> Response:
    """Return every metric in Prometheus's text format: of the process, or the sum of all workers.

    Scrape each address once: any worker behind it returns the same.
    """
    content = await _collect(context.metrics, context.metrics.render)
    return Response(content, headers={"Content-Type": CONTENT_TYPE_LATEST})


@metrics_router.get(
    "/metrics",
    summary="Metrics as JSON",
    response_model=ProcessMetrics,
    responses=describe_problems(),
)
async def read_metrics(context: Annotated[AppContext, Depends(get_context)]) -> JsonResponse:
    """Return what `/metrics` does, for pages that reach the process through a proxy.

    Prometheus scrapes `/metrics` of each process instead.
    """
    return JsonResponse(await _collect(context.metrics, lambda: collect_samples(context.metrics)))


async def _collect(metrics: Metrics, collect: Callable[[], Result]) -> Result:
    """Collect metrics; those of several workers on a thread, as it takes a while."""
    return await asyncio.to_thread(collect) if metrics.is_shared else collect()
