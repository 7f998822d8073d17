"""Responses of the key operations."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from pydantic import ConfigDict

from app.http.types import RESPONSE_CONFIG


@dataclass(frozen=True, slots=True)
class Caller:
    """The authenticated caller."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    name: str
    """As in the audit trail: the name and id of the key, or `loopback`."""
    role: Literal["read", "admin"]
    """The caller's role: `read` for queries, `admin` for every operation."""
    has_key: bool
    """Whether the request carried a key; the local token of the process has the role `admin`, where
    it is accepted."""
