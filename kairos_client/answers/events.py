"""What became of events."""

from kairos_client.answers.answer import Answer


class RejectedEvent(Answer):
    """An event that was not kept."""

    index: int
    """Its position among the events that were given, from 0."""
    code: str
    """The rule it breaks, stable."""
    message: str
    """The rule, the value and the remedy."""


class Ingested(Answer):
    """What became of events; whatever was accepted is on the service's disk."""

    accepted: int
    """Events that were new."""
    duplicates: int
    """Events already known, or given twice."""
    rejected: tuple[RejectedEvent, ...]
    """Events that break a rule."""
