"""GET /v1/caller."""

from fastapi import APIRouter, Request

from app.http.problems import describe_problems
from app.http.responses import JsonResponse
from app.http.routes import ReadRoute
from app.keys.schemas import Caller

router = APIRouter(prefix="/v1", tags=["keys"], route_class=ReadRoute)


@router.get(
    "/caller",
    summary="Identify the caller",
    response_model=Caller,
    responses=describe_problems(),
)
async def read_caller(request: Request) -> JsonResponse:
    """Return the caller's name and role; of the key itself only its name and id."""
    caller = request.state.caller
    return JsonResponse(Caller(caller.name, caller.role, caller.has_key))
