"""Reads the audit page by page."""

import re

from app.audit.repository import AuditReader, Entry, Position
from app.audit.schemas import AuditEntry, AuditPage
from app.context import AppContext
from app.errors import UnprocessableError
from app.http.types import format_instant

_CURSOR = re.compile(r"(-?\d{1,18})\.([01])\.(\d{1,18})", re.ASCII)


async def list_audit_page(context: AppContext, *, cursor: str | None, limit: int) -> AuditPage:
    """List one page of the audit, newest first.

    Raises:
        UnprocessableError: if the cursor is not the `next_cursor` of an earlier page.
        DatabaseUnavailableError: if the audit cannot be read.
        OverloadedError: if too many requests are waiting.
    """
    before = None if cursor is None else _parse_cursor(cursor)
    async with context.overviews.take_turn():
        found = await context.database.read(
            lambda session: AuditReader(session).list_page(before=before, limit=limit + 1)
        )
    page = found[:limit]
    next_cursor = ".".join(map(str, page[-1].position)) if len(found) > limit else None
    return AuditPage(tuple(map(to_response, page)), next_cursor)


def to_response(entry: Entry) -> AuditEntry:
    """Convert an entry to its response."""
    return AuditEntry(format_instant(entry.position.at), entry.actor, entry.act, entry.detail)


def _parse_cursor(cursor: str) -> Position:
    match = _CURSOR.fullmatch(cursor)
    if match is None:
        raise UnprocessableError(
            f"a cursor is the next_cursor of an earlier page, but got {cursor[:60]!r}; "
            "leave it out to begin at the first page"
        )
    return Position(*map(int, match.groups()))
