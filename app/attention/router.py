"""POST /v1/attention."""

from typing import Annotated

from fastapi import APIRouter, Depends

from app.attention.schemas import AttentionAnswer, AttentionRequest
from app.attention.service import AttentionService
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

router = APIRouter(prefix="/v1", tags=["recommendations"], route_class=ReadRoute)


@router.post(
    "/attention",
    summary="Sweep one history over many instants",
    response_model=AttentionAnswer,
    responses=problems(
        ModelNotFoundError,
        ModelRefusedError,
        NoModelError,
        DatabaseUnavailableError,
        OverloadedError,
        has_body=True,
    ),
)
async def sweep(
    asked: AttentionRequest, context: Annotated[AppContext, Depends(get_context)]
) -> JsonResponse:
    """How does what the model attends to, and what it recommends, move while the clock runs?

    At each instant the answer is that of `POST /v1/recommendations`, in one request.
    """
    return JsonResponse(await AttentionService(context).sweep(asked))
