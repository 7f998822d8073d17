"""POST /v1/recommendations."""

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
from app.recommendations.schemas import RecommendationAnswer, RecommendationRequest
from app.recommendations.service import RecommendationService

router = APIRouter(prefix="/v1", tags=["recommendations"], route_class=ReadRoute)


@router.post(
    "/recommendations",
    summary="Recommend items for a history at an instant",
    response_model=RecommendationAnswer,
    responses=problems(
        ModelNotFoundError,
        ModelRefusedError,
        NoModelError,
        DatabaseUnavailableError,
        OverloadedError,
        has_body=True,
    ),
)
async def recommend(
    asked: RecommendationRequest, context: Annotated[AppContext, Depends(get_context)]
) -> JsonResponse:
    """What should this user see at this instant, and which past events made the model say so?

    The history comes from the store (`user_id`), from the request (`history`), or from both
    (`merge`). Without any usable event the answer is what is popular, flagged `no_history`.
    """
    return JsonResponse(await RecommendationService(context).recommend(asked))
