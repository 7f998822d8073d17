"""POST /v1/events."""

from typing import Annotated

from fastapi import APIRouter, Depends

from app.answers import JsonAnswer
from app.errors import DatabaseUnavailableError, OverloadedError
from app.events.schemas import EventBatch, Ingested
from app.events.service import EventService
from app.guarded import IngestRoute
from app.parts import Parts, parts_of
from app.problems import problems

router = APIRouter(prefix="/v1", tags=["events"], route_class=IngestRoute)


@router.post(
    "/events",
    summary="Keep what users did",
    response_model=Ingested,
    responses=problems(DatabaseUnavailableError, OverloadedError, has_body=True),
)
async def ingest(batch: EventBatch, parts: Annotated[Parts, Depends(parts_of)]) -> JsonAnswer:
    """Keep events, each exactly once; answered after they are committed.

    Sending a batch again is always safe: what is known already counts as a duplicate. Events may be
    late and in any order. An event that breaks a rule is rejected alone.
    """
    return JsonAnswer(await EventService(parts).ingest(batch))
