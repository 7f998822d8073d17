"""GET /v1/audit."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query

from app.audit.schemas import AuditPage
from app.audit.service import list_audit_page
from app.context import AppContext, get_context
from app.errors import DatabaseUnavailableError, OverloadedError, UnprocessableError
from app.http.problems import describe_problems
from app.http.responses import JsonResponse
from app.http.routes import AdminRoute

router = APIRouter(prefix="/v1", tags=["audit"], route_class=AdminRoute)


@router.get(
    "/audit",
    summary="Read the audit",
    response_model=AuditPage,
    responses=describe_problems(UnprocessableError, DatabaseUnavailableError, OverloadedError),
)
async def read_audit(
    context: Annotated[AppContext, Depends(get_context)],
    cursor: Annotated[
        str | None, Query(description="The `next_cursor` of the page before.", max_length=64)
    ] = None,
    limit: Annotated[int, Query(ge=1, le=500, description="Most entries to return.")] = 100,
) -> JsonResponse:
    """List erasures, keys, bulk reads, imports, backups and changes of the served models."""
    return JsonResponse(await list_audit_page(context, cursor=cursor, limit=limit))
