"""Responses of GET /v1/audit."""

from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import ConfigDict

from app.http.types import RESPONSE_CONFIG, Rfc3339


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """An act that stays known: who did what, when."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    at: Rfc3339
    actor: str
    """The name and the id of a key, or `cli:` and a user of the machine."""
    act: str
    """`erase_user`, `create_key`, `revoke_key`, `list_users`, `export_events`, `import_events`,
    `import_items`, `backup`, `restore`; of the served models `publish`, `activate`, `rollback`,
    `retrain`, `traffic`."""
    detail: dict[str, Any]
    """Depends on the act. An erased user is named by the SHA-256 of the id only."""


@dataclass(frozen=True, slots=True)
class AuditPage:
    """A page of the audit."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    entries: tuple[AuditEntry, ...]
    """Newest first."""
    next_cursor: str | None
    """The `cursor` of the next page; null on the last one."""
