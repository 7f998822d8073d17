"""GET /v1/training-runs."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query

from app.context import AppContext, get_context
from app.errors import DatabaseUnavailableError, OverloadedError
from app.http.problems import describe_problems
from app.http.responses import JsonResponse
from app.http.routes import ReadRoute
from app.training_runs import service
from app.training_runs.schemas import TrainingRunList

router = APIRouter(prefix="/v1", tags=["models"], route_class=ReadRoute)


@router.get(
    "/training-runs",
    summary="List retraining runs",
    response_model=TrainingRunList,
    responses=describe_problems(DatabaseUnavailableError, OverloadedError),
)
async def list_training_runs(
    context: Annotated[AppContext, Depends(get_context)],
    limit: Annotated[int, Query(ge=1, le=200, description="Most runs to return.")] = 20,
) -> JsonResponse:
    """List runs of `kairos retrain`: their results, and the gate's decisions and measurements."""
    return JsonResponse(await service.list_training_runs(context, limit))
