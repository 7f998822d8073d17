"""Probes and metrics: answered at once or not at all."""

from kairos_client.answers.health import Liveness, Readiness
from kairos_client.calls import Again, Call, reading, text

_NOT_READY = frozenset({503})


def live() -> Call[Liveness]:
    """Whether the process runs."""
    return Call("live", "GET", "/health/live", reading(Liveness), Again.NEVER)


def ready() -> Call[Readiness]:
    """Whether the process can do all of its work, and which part cannot."""
    read = reading(Readiness)
    return Call("ready", "GET", "/health/ready", read, Again.NEVER, told_by=_NOT_READY)


def metrics() -> Call[str]:
    """Every metric of the process that answers, in Prometheus's text format."""
    return Call("metrics", "GET", "/metrics", text, Again.NEVER)
