"""What probes are told."""

from kairos_client.answers.answer import Answer, Moment


class Liveness(Answer):
    """The process runs."""

    status: str = "live"


class Readiness(Answer):
    """Whether a process can do all of its work, part by part."""

    status: str
    """`ready` or `not_ready`."""
    model: str
    """`ok`, or what is wrong."""
    database: str
    """`ok`, or what is wrong."""
    process: str
    """`ok`, or that it is about to stop."""


class MetricSample(Answer):
    """One value of a metric."""

    name: str
    """The metric's name; of a histogram with `_bucket`, `_count` or `_sum` behind it."""
    labels: dict[str, str]
    """What it is the value of."""
    value: float


class MetricSamples(Answer):
    """A metric and its values."""

    name: str
    kind: str
    """`counter` and `histogram` only ever grow, a `gauge` is as it is."""
    samples: tuple[MetricSample, ...]
    """One for each combination of labels that has come up."""


class ProcessMetrics(Answer):
    """The metrics of the process that answered."""

    instance: str
    """Which process it was: only values of the same one can be subtracted."""
    started_at: Moment
    """When it started."""
    at: Moment
    """When it answered."""
    metrics: tuple[MetricSamples, ...]
    """Every metric."""


class Caller(Answer):
    """Who the service takes the caller for."""

    name: str
    """As the audit trail names them: the name and id of the key, or `loopback`."""
    role: str
    """`read` asks and looks, `admin` may do everything."""
    has_key: bool
    """Whether they showed a key."""
