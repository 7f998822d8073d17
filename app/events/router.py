"""POST /v1/events."""

from typing import Annotated

from fastapi import APIRouter, Depends

from app.context import AppContext, get_context
from app.errors import DatabaseUnavailableError, OverloadedError
from app.events.schemas import EventBatch, Ingested
from app.events.service import EventService
from app.http.problems import problems
from app.http.responses import JsonResponse
from app.http.routes import IngestRoute

router = APIRouter(prefix="/v1", tags=["events"], route_class=IngestRoute)


@router.post(
    "/events",
    summary="Keep what users did",
    response_model=Ingested,
    responses=problems(DatabaseUnavailableError, OverloadedError, has_body=True),
)
async def ingest(
    batch: EventBatch, context: Annotated[AppContext, Depends(get_context)]
) -> JsonResponse:
    """Keep events, each exactly once; answered after they are committed.

    Sending a batch again is always safe: what is known already counts as a duplicate. Events may be
    late and in any order. An event that breaks a rule is rejected alone.
    """
    return JsonResponse(await EventService(context).ingest(batch))
