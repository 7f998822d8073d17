"""Kairos for Python programs: ask the service, tell it what happened, and trust the retries.

Stands alone: it needs httpx and pydantic, and nothing of the service.
"""

from kairos_client.awaiting import AsyncKairosClient
from kairos_client.blocking import KairosClient
from kairos_client.buffer import BufferFullError, EventBuffer
from kairos_client.errors import (
    BrokenRule,
    ConflictError,
    ForbiddenError,
    InvalidError,
    KairosError,
    LostAnswerError,
    NotFoundError,
    RateLimitedError,
    ServiceFailedError,
    UnauthenticatedError,
    UnavailableError,
    UnexpectedAnswerError,
)
from kairos_client.retries import Retries
from kairos_client.told import Event, ItemDescription, PastEvent

__all__ = [
    "AsyncKairosClient",
    "BrokenRule",
    "BufferFullError",
    "ConflictError",
    "Event",
    "EventBuffer",
    "ForbiddenError",
    "InvalidError",
    "ItemDescription",
    "KairosClient",
    "KairosError",
    "LostAnswerError",
    "NotFoundError",
    "PastEvent",
    "RateLimitedError",
    "Retries",
    "ServiceFailedError",
    "UnauthenticatedError",
    "UnavailableError",
    "UnexpectedAnswerError",
]
