"""Python client of the Kairos service: typed responses, safe retries, events stored exactly once.

Depends on httpx and pydantic only, and imports nothing of the service.
"""

from kairos_client.buffer import EventBuffer
from kairos_client.client import AsyncKairosClient, KairosClient
from kairos_client.errors import (
    BrokenRule,
    BufferFullError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    KairosError,
    NoResponseError,
    NotFoundError,
    RateLimitedError,
    ServiceFailedError,
    UnauthenticatedError,
    UnavailableError,
    UnexpectedResponseError,
)
from kairos_client.models import Event, ItemDescription, PastEvent
from kairos_client.retrying import Retries

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
    "NoResponseError",
    "NotFoundError",
    "PastEvent",
    "RateLimitedError",
    "Retries",
    "ServiceFailedError",
    "UnauthenticatedError",
    "UnavailableError",
    "UnexpectedResponseError",
]
