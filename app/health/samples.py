"""The metrics of this process as plain values, for whoever reads no Prometheus format."""

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
    """Every metric, as `/metrics` has it."""
    return ProcessMetrics(
        instance=metrics.instance,
        started_at=format_instant(metrics.started_at),
        at=format_instant(now()),
        metrics=tuple(_told(metrics.registry.collect())),
    )


def _told(families: Iterable[Metric]) -> Iterator[MetricSamples]:
    for family in families:
        if family.type not in _KINDS:
            continue
        # As Prometheus's text has it: the library keeps the names of counters without their end.
        name = family.name + ("_total" if family.type == "counter" else "")
        yield MetricSamples(
            name=name,
            kind=cast(Kind, family.type),
            samples=tuple(
                MetricSample(sample.name, sample.labels, sample.value)
                for sample in family.samples
                # When a counter began says nothing new, and JSON knows no NaN.
                if not sample.name.endswith("_created") and math.isfinite(sample.value)
            ),
        )
