"""POST /v1/attention."""

from typing import Annotated

from fastapi import APIRouter, Depends

from app.attention.schemas import AttentionAnswer, AttentionRequest
from app.attention.service import sweep_history
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

router = APIRouter(prefix="/v1", tags=["recommendations"], route_class=DemoReadRoute)


@router.post(
    "/attention",
    summary="Compute attention and recommendations at many query times",
    response_model=AttentionAnswer,
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
async def sweep(
    request: AttentionRequest,
    context: Annotated[AppContext, Depends(get_context)],
    caller: Annotated[Caller, Depends(get_caller)],
) -> JsonResponse:
    """Compute the attention weights and the best items of one history at many query times: a sweep.

    The result at each query time equals that of `POST /v1/recommendations`.
    """
    caller.require_user(request.user_id)
    return JsonResponse(await sweep_history(context, request))
