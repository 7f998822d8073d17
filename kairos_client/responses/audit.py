"""Responses of the audit."""

from typing import Any

from kairos_client.responses.response import Response, UtcDatetime


class AuditEntry(Response):
    """An act that stays known: who did what, when."""

    at: UtcDatetime
    actor: str
    """The name and the id of a key, or `cli:` and a user of the machine."""
    act: str
    """Such as `erase_user`, `create_key`, `export_events`, `activate`."""
    detail: dict[str, Any]
    """Depends on the act. An erased user is named by the SHA-256 of the id only."""


class AuditPage(Response):
    """A page of the audit."""

    entries: tuple[AuditEntry, ...]
    """Newest first."""
    next_cursor: str | None = None
    """The `cursor` of the next page; None on the last one."""
