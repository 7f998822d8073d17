"""GET /v1/caller."""

from fastapi import APIRouter, Request

from app.answers import JsonAnswer
from app.guarded import ReadRoute
from app.keys.schemas import CallerAnswer

router = APIRouter(prefix="/v1", tags=["keys"], route_class=ReadRoute)


@router.get("/caller", summary="Who am I taken for?", response_model=CallerAnswer)
async def read_caller(request: Request) -> JsonAnswer:
    """Who the service takes the caller for, and how far they reach; of the key only its name."""
    caller = request.state.caller
    return JsonAnswer(CallerAnswer(caller.name, caller.role, caller.has_key))
