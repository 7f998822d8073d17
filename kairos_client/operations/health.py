"""Probes and metrics, answered at once or not at all; and who asks."""

from kairos_client.answers.health import Caller, Liveness, ProcessMetrics, Readiness
from kairos_client.calls import Again, Call, fetch, reading, text

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


def read_metrics() -> Call[ProcessMetrics]:
    """Every metric of the process that answers, as values: where the proxy hides `metrics`."""
    return Call("read_metrics", "GET", "/v1/metrics", reading(ProcessMetrics), Again.NEVER)


def read_caller() -> Call[Caller]:
    """Who the service takes this client for, and how far that reaches."""
    return fetch("read_caller", "/v1/caller", Caller)
