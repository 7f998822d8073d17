"""POST /v1/rankings."""

from typing import Annotated

from fastapi import APIRouter, Depends

from app.context import AppContext, get_context
from app.errors import (
    DatabaseUnavailableError,
    ModelNotFoundError,
    ModelRefusedError,
    NoModelError,
    OverloadedError,
)
from app.http.problems import problems
from app.http.responses import JsonResponse
from app.http.routes import ReadRoute
from app.rankings.schemas import RankingAnswer, RankingRequest
from app.rankings.service import RankingService

router = APIRouter(prefix="/v1", tags=["recommendations"], route_class=ReadRoute)


@router.post(
    "/rankings",
    summary="Rank given items for a history at an instant",
    response_model=RankingAnswer,
    responses=problems(
        ModelNotFoundError,
        ModelRefusedError,
        NoModelError,
        DatabaseUnavailableError,
        OverloadedError,
        has_body=True,
    ),
)
async def rank(
    asked: RankingRequest, context: Annotated[AppContext, Depends(get_context)]
) -> JsonResponse:
    """In which order should this user see these items at this instant?

    For candidates that come from elsewhere: a search, a shelf, a mailing. Nothing is filtered;
    whatever is given comes back, unknown items last.
    """
    return JsonResponse(await RankingService(context).rank(asked))
