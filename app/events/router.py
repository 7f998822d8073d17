"""POST /v1/events."""

from typing import Annotated

from fastapi import APIRouter, Depends

from app.auth.access import Caller
from app.context import AppContext, get_context
from app.errors import DatabaseUnavailableError, OverloadedError
from app.events.schemas import EventBatch, Ingested
from app.events.service import ingest_events
from app.http.problems import describe_problems
from app.http.responses import JsonResponse
from app.http.routes import IngestRoute, get_caller

router = APIRouter(prefix="/v1", tags=["events"], route_class=IngestRoute)


@router.post(
    "/events",
    summary="Store events",
    response_model=Ingested,
    responses=describe_problems(DatabaseUnavailableError, OverloadedError, has_body=True),
)
async def ingest(
    batch: EventBatch,
    context: Annotated[AppContext, Depends(get_context)],
    caller: Annotated[Caller, Depends(get_caller)],
) -> JsonResponse:
    """Store events, each exactly once. The response follows the commit.

    A batch may be sent again at any time: stored events count as duplicates. Events may arrive late
    and in any order. An event that breaks a rule is rejected; the others are stored.

    A key for users whose ids begin with a prefix stores events of those: with an event of another
    user, none of the batch. Its event ids are its own, and never equal those of another sender.
    """
    return JsonResponse(await ingest_events(context, batch, caller))
