"""GET /v1/training-runs."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query

from app.answers import JsonAnswer
from app.errors import DatabaseUnavailableError, OverloadedError
from app.guarded import ReadRoute
from app.parts import Parts, parts_of
from app.problems import problems
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
    parts: Annotated[Parts, Depends(parts_of)],
    limit: Annotated[int, Query(ge=1, le=200, description="Most runs to answer.")] = 20,
) -> JsonAnswer:
    """Runs of `kairos retrain`: their results, the gate's decisions and the numbers behind them."""
    return JsonAnswer(await TrainingRunService(parts).list(limit))
