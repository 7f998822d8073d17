"""The metrics of this process as JSON values."""

import math
from collections.abc import Iterable, Iterator
from typing import cast

from prometheus_client import Metric

from app.health.schemas import Kind, MetricSample, MetricSamples, ProcessMetrics
from app.http.types import format_instant
from app.observability.metrics import Metrics
from model.clock import now

_KINDS = ("counter", "gauge", "histogram")


def collect_samples(metrics: Metrics) -> ProcessMetrics:
    """Collect every metric that `/metrics` returns."""
    return ProcessMetrics(
        instance=metrics.instance,
        started_at=format_instant(metrics.started_at),
        at=format_instant(now()),
        metrics=tuple(_to_samples(metrics.reported.collect())),
    )


def _to_samples(families: Iterable[Metric]) -> Iterator[MetricSamples]:
    for family in families:
        if family.type not in _KINDS:
            continue
        # The library keeps the names of counters without the suffix of the text format.
        name = family.name + ("_total" if family.type == "counter" else "")
        yield MetricSamples(
            name=name,
            kind=cast(Kind, family.type),
            samples=tuple(
                MetricSample(sample.name, sample.labels, sample.value)
                for sample in family.samples
                # `_created` repeats `started_at`, and JSON has no NaN.
                if not sample.name.endswith("_created") and math.isfinite(sample.value)
            ),
        )
