"""Responses about the process: probes, metrics and the caller."""

from kairos_client.responses.response import Response, UtcDatetime


class Liveness(Response):
    """The process is running."""

    status: str = "live"


class Readiness(Response):
    """Whether a process can serve requests, by component."""

    status: str
    """`ready` or `not_ready`."""
    model: str
    """`ok`, or the problem."""
    database: str
    """`ok`, or the problem."""
    writes: str = "ok"
    """Whether the database accepts writes: `ok`, or the problem."""
    tasks: str = "ok"
    """Whether the periodic tasks of the process succeed: `ok`, or those that do not."""
    process: str
    """`ok`, or that it is shutting down."""


class MetricSample(Response):
    """One value of a metric."""

    name: str
    """The metric's name; for a histogram with the suffix `_bucket`, `_count` or `_sum`."""
    labels: dict[str, str]
    """Label values by label name."""
    value: float


class MetricSamples(Response):
    """A metric and its values."""

    name: str
    kind: str
    """`counter`, `gauge` or `histogram`; counters and histograms never decrease."""
    samples: tuple[MetricSample, ...]
    """One per combination of labels that has occurred."""


class ProcessMetrics(Response):
    """The metrics of one process."""

    instance: str
    """Identifies the process; compare only values of the same instance."""
    started_at: UtcDatetime
    """When the process started."""
    at: UtcDatetime
    """When the values were read."""
    metrics: tuple[MetricSamples, ...]
    """Every metric."""


class Caller(Response):
    """The authenticated caller."""

    name: str
    """The name in the audit trail: name and id of the API key, or `loopback`."""
    role: str
    """`read`, `ingest` or `admin`."""
    has_key: bool
    """Whether the request carried an API key."""
