"""POST /v1/recommendations."""

from typing import Annotated

from fastapi import APIRouter, Depends

from app.auth.access import Caller
from app.context import AppContext, get_context
from app.errors import (
    DatabaseUnavailableError,
    ModelNotFoundError,
    ModelRefusedError,
    NoModelError,
    OverloadedError,
    OverShareError,
)
from app.http.problems import describe_problems
from app.http.responses import JsonResponse
from app.http.routes import DemoReadRoute, get_caller
from app.recommendations.schemas import RecommendationAnswer, RecommendationRequest
from app.recommendations.service import recommend_items

router = APIRouter(prefix="/v1", tags=["recommendations"], route_class=DemoReadRoute)


@router.post(
    "/recommendations",
    summary="Recommend items for a history at a query time",
    response_model=RecommendationAnswer,
    responses=describe_problems(
        ModelNotFoundError,
        ModelRefusedError,
        NoModelError,
        DatabaseUnavailableError,
        OverloadedError,
        OverShareError,
        has_body=True,
    ),
)
async def recommend(
    request: RecommendationRequest,
    context: Annotated[AppContext, Depends(get_context)],
    caller: Annotated[Caller, Depends(get_caller)],
) -> JsonResponse:
    """Recommend items to a user at an instant, with attention weights of the user's past events.

    The history is stored (`user_id`), inline (`history`), or both (`merge`). Without a usable event
    the items are the most popular ones, and `fallback` is `no_history`.
    """
    caller.require_user(request.user_id)
    return JsonResponse(await recommend_items(context, request))
