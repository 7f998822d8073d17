"""Responses to ingested events."""

from kairos_client.responses.response import Response


class RejectedEvent(Response):
    """An event that was not stored."""

    index: int
    """Its position among the given events, from 0."""
    code: str
    """Identifies the rule it breaks; stable."""
    message: str
    """The rule, the value and the remedy."""


class Ingested(Response):
    """The result of an ingestion; accepted events are committed."""

    accepted: int
    """Number of new events."""
    duplicates: int
    """Number of events that were stored before, or given twice."""
    rejected: tuple[RejectedEvent, ...]
    """Events that break a rule."""
