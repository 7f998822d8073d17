"""Probes and metrics."""

from typing import Annotated

from fastapi import APIRouter, Depends, Response
from prometheus_client import CONTENT_TYPE_LATEST

from app.context import AppContext, get_context
from app.errors import ServiceError
from app.health.samples import samples_of
from app.health.schemas import Liveness, ProcessMetrics, Readiness
from app.http.problems import problems
from app.http.responses import JsonAnswer
from app.http.routes import ReadRoute

router = APIRouter(tags=["health"])
reading = APIRouter(prefix="/v1", tags=["health"], route_class=ReadRoute)


@router.get("/health/live", summary="Does the process run?", response_model=Liveness)
async def live() -> JsonAnswer:
    """Answers as long as the event loop turns; restart the process when it does not."""
    return JsonAnswer(Liveness())


@router.get(
    "/health/ready",
    summary="Can the process do its work?",
    response_model=Readiness,
    responses={503: {"model": Readiness, "description": "Some part cannot; which one is said."}},
)
async def ready(context: Annotated[AppContext, Depends(get_context)]) -> JsonAnswer:
    """Whether a model is open, the database answers and the process stays.

    Send no traffic while it says otherwise.
    """
    model = database = "ok"
    try:
        context.serving.require()
    except ServiceError as error:
        model = str(error)
    try:
        await context.database.check()
    except ServiceError as error:
        database = str(error)
    process = "was told to stop; ask another" if context.leaving.has_begun else "ok"
    is_ready = model == database == process == "ok"
    return JsonAnswer(
        Readiness("ready" if is_ready else "not_ready", model, database, process),
        status_code=200 if is_ready else 503,
    )


@router.get(
    "/metrics",
    summary="Metrics for Prometheus",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def metrics(context: Annotated[AppContext, Depends(get_context)]) -> Response:
    """Every metric of this process, in Prometheus's text format."""
    return Response(context.metrics.page(), headers={"Content-Type": CONTENT_TYPE_LATEST})


@reading.get(
    "/metrics", summary="Metrics as JSON", response_model=ProcessMetrics, responses=problems()
)
async def read_metrics(context: Annotated[AppContext, Depends(get_context)]) -> JsonAnswer:
    """Every metric of the process that answers, for pages that reach it through the proxy.

    Prometheus scrapes `/metrics` of each process instead.
    """
    return JsonAnswer(samples_of(context.metrics))
