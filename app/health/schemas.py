"""Responses of the probes and of the metrics operation."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from pydantic import ConfigDict

from app.http.types import RESPONSE_CONFIG, Rfc3339


@dataclass(frozen=True, slots=True)
class Liveness:
    """The process runs."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    status: Literal["live"] = "live"


@dataclass(frozen=True, slots=True)
class Readiness:
    """The readiness of the process, part by part."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    status: Literal["ready", "not_ready"]
    model: str
    """`ok`, or the problem. While an earlier version serves in place of one that does not open, the
    process is ready and this names both."""
    database: str
    """`ok`, or the problem."""
    writes: str
    """Whether the database accepts writes: `ok`, or the problem."""
    tasks: str
    """Whether the periodic tasks of the process succeed: `ok`, or those that do not."""
    process: str
    """`ok`, or that the process is shutting down."""


Kind = Literal["counter", "gauge", "histogram"]


@dataclass(frozen=True, slots=True)
class MetricSample:
    """One value of a metric."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    name: str
    """The metric's name; for a histogram with the suffix `_bucket`, `_count` or `_sum`."""
    labels: dict[str, str]
    """The labels of the value; `le` of a bucket is its upper bound."""
    value: float
    """The value."""


@dataclass(frozen=True, slots=True)
class MetricSamples:
    """A metric and its values."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    name: str
    """The name in `/metrics`."""
    kind: Kind
    """A `counter` and a `histogram` only grow: subtract two values for an interval."""
    samples: tuple[MetricSample, ...]
    """One for each combination of labels."""


@dataclass(frozen=True, slots=True)
class ProcessMetrics:
    """The metrics of the responding process, or the sum over its workers."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    instance: str
    """The random name of the process, or of all its workers: behind a proxy the next response may
    come from another one, and only values of the same name can be subtracted."""
    started_at: Rfc3339
    """The start of the process."""
    at: Rfc3339
    """The instant of the response."""
    metrics: tuple[MetricSamples, ...]
    """Every metric."""
