"""GET /v1/caller."""

from fastapi import APIRouter, Request

from app.http.problems import problems
from app.http.responses import JsonResponse
from app.http.routes import ReadRoute
from app.keys.schemas import Caller

router = APIRouter(prefix="/v1", tags=["keys"], route_class=ReadRoute)


@router.get("/caller", summary="Who am I taken for?", response_model=Caller, responses=problems())
async def read_caller(request: Request) -> JsonResponse:
    """Who the service takes the caller for, and how far they reach; of the key only its name."""
    told = request.state.caller
    return JsonResponse(Caller(told.name, told.role, told.has_key))
