"""GET /v1/training-runs."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query

from app.context import AppContext, get_context
from app.errors import DatabaseUnavailableError, OverloadedError
from app.http.problems import problems
from app.http.responses import JsonResponse
from app.http.routes import ReadRoute
from app.training_runs.schemas import TrainingRunList
from app.training_runs.service import TrainingRunService

router = APIRouter(prefix="/v1", tags=["models"], route_class=ReadRoute)


@router.get(
    "/training-runs",
    summary="What became of retraining?",
    response_model=TrainingRunList,
    responses=problems(DatabaseUnavailableError, OverloadedError),
)
async def list_training_runs(
    context: Annotated[AppContext, Depends(get_context)],
    limit: Annotated[int, Query(ge=1, le=200, description="Most runs to answer.")] = 20,
) -> JsonResponse:
    """Runs of `kairos retrain`: their results, the gate's decisions and the numbers behind them."""
    return JsonResponse(await TrainingRunService(context).list(limit))
