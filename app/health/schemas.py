"""What probes are told."""

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
    """Whether this process can do all of its work, part by part."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    status: Literal["ready", "not_ready"]
    model: str
    """`ok`, or what is wrong."""
    database: str
    """`ok`, or what is wrong."""
    process: str
    """`ok`, or that it is about to stop."""


Kind = Literal["counter", "gauge", "histogram"]


@dataclass(frozen=True, slots=True)
class MetricSample:
    """One value of a metric."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    name: str
    """The metric's name; of a histogram with `_bucket`, `_count` or `_sum` behind it."""
    labels: dict[str, str]
    """What it is the value of; `le` of a bucket is the most seconds (or events) it counts."""
    value: float
    """The value."""


@dataclass(frozen=True, slots=True)
class MetricSamples:
    """A metric and its values."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    name: str
    """As `/metrics` names it."""
    kind: Kind
    """A `counter` and a `histogram` only ever grow: what happened meanwhile is a difference."""
    samples: tuple[MetricSample, ...]
    """One for each combination of labels that has come up."""


@dataclass(frozen=True, slots=True)
class ProcessMetrics:
    """The metrics of the process that answers."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    instance: str
    """Which process this is, drawn at random when it starts: behind a proxy the next answer may be
    another's, and only values of the same one can be subtracted."""
    started_at: Rfc3339
    """When it started."""
    at: Rfc3339
    """When it answered."""
    metrics: tuple[MetricSamples, ...]
    """Every metric."""
