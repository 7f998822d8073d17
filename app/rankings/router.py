"""POST /v1/rankings."""

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
from app.rankings.schemas import RankingAnswer, RankingRequest
from app.rankings.service import rank_items

router = APIRouter(prefix="/v1", tags=["recommendations"], route_class=DemoReadRoute)


@router.post(
    "/rankings",
    summary="Rank given items for a history at a query time",
    response_model=RankingAnswer,
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
async def rank(
    request: RankingRequest,
    context: Annotated[AppContext, Depends(get_context)],
    caller: Annotated[Caller, Depends(get_caller)],
) -> JsonResponse:
    """Order candidates of another source, such as a search or a mailing, for a user and instant.

    Nothing is filtered: every given item is returned, unknown items last.
    """
    caller.require_user(request.user_id)
    return JsonResponse(await rank_items(context, request))
