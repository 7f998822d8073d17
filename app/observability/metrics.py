"""The Prometheus metrics of the service. Labels hold no ids, so their number is bounded."""

import math
import secrets
import time
from typing import final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from app.observability.shared_metrics import MetricsShare, open_share
from model.clock import now

_SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
_LAG_SECONDS = (1.0, 10.0, 60.0, 600.0, 3600.0, 86400.0, 604800.0, 2592000.0)
_SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
_RATIOS = (0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 4.0, 10.0)
_EVENTS = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)


@final
class Metrics:
    """The metrics of one application, in a registry of their own.

    Several workers of one application share `instance` and `started_at`.

    Attributes:
        instance: a random name of this application.
        started_at: the instant since which the metrics count, epoch microseconds.
        is_shared: whether other workers count, too.
        registry: the metrics of this process.
        reported: what `/metrics` reports: `registry`, or the sum over all workers.
    """

    def __init__(self, share: MetricsShare | None = None) -> None:
        """Count nothing yet.

        Args:
            share: where this process and other workers count; None if it counts alone.
        """
        self.is_shared = share is not None
        self.registry = registry = CollectorRegistry()
        if share is None:
            self.instance, self.started_at = secrets.token_hex(8), now()
            self.reported = registry
        else:
            self.instance, self.started_at = share.instance, share.started_at
            self.reported = open_share(share)
        self.requests = Counter(
            "http_requests_total",
            "Requests by method, route template and status code.",
            ["method", "route", "status"],
            registry=registry,
        )
        self.request_seconds = Histogram(
            "http_request_duration_seconds",
            "Time from the end of a request's headers to the last byte of its response.",
            ["method", "route"],
            buckets=_SECONDS,
            registry=registry,
        )
        self.connections_closed = Counter(
            "kairos_connections_closed_total",
            "Connections that a limit closed: headers, body or response too slow, evicted by newer "
            "ones, refused, malformed.",
            ["reason"],
            registry=registry,
        )
        self.recommendations = Counter(
            "kairos_recommendations_total",
            "Recommendation responses, by the fallback used (none: the model ranked the items).",
            ["fallback"],
            registry=registry,
        )
        self.stage_seconds = Histogram(
            "kairos_stage_duration_seconds",
            "Duration of one stage of a response: history, filter, encode, search or explain.",
            ["stage"],
            buckets=_SECONDS,
            registry=registry,
        )
        self._stages: dict[str, Histogram] = {}
        self.history_length = Histogram(
            "kairos_history_length",
            "Events the model read for one recommendation.",
            buckets=_EVENTS,
            registry=registry,
        )
        self.events_ingested = Counter(
            "kairos_events_ingested_total",
            "Events received, by outcome: accepted, duplicate or rejected.",
            ["result"],
            registry=registry,
        )
        self.event_lag_seconds = Histogram(
            "kairos_event_lag_seconds",
            "Age of accepted events when they arrived.",
            buckets=_LAG_SECONDS,
            registry=registry,
        )
        self.model_info = Gauge(
            "kairos_model_info",
            "1 for the version of the active bundle.",
            ["version"],
            multiprocess_mode="livemostrecent",
            registry=registry,
        )
        self.model_loaded = Gauge(
            "kairos_model_loaded_timestamp_seconds",
            "When the active bundle was opened, in epoch seconds.",
            multiprocess_mode="livemostrecent",
            registry=registry,
        )
        self.model_swaps = Counter(
            "kairos_model_swaps_total",
            "Bundles by outcome: activated as the current one, or refused, also as challenger, "
            "shadow or last known good.",
            ["result"],
            registry=registry,
        )
        self.pointer_faults = Gauge(
            "kairos_pointer_faults",
            "1 while a pointer of the bundle store, or its bundle, cannot be read.",
            ["pointer"],
            multiprocess_mode="livemax",
            registry=registry,
        )
        self.offline_metric = Gauge(
            "kairos_offline_metric",
            "Test metrics of the active bundle, measured before it was published.",
            ["name", "version"],
            multiprocess_mode="livemostrecent",
            registry=registry,
        )
        self.training_runs = Counter(
            "kairos_training_runs_total",
            "Runs of the retraining job in the database, by result; every process counts all.",
            ["result"],
            registry=registry,
        )
        self.index_items = Gauge(
            "kairos_index_items",
            "Items that the active bundle can recommend.",
            multiprocess_mode="livemostrecent",
            registry=registry,
        )
        self.inference_in_progress = Gauge(
            "kairos_inference_in_progress",
            "Requests that wait for an inference thread or run on one.",
            multiprocess_mode="livesum",
            registry=registry,
        )
        self.inference_queue_seconds = Histogram(
            "kairos_inference_queue_seconds",
            "Time a call waited for an inference thread, by class: short, long or background.",
            ["class"],
            buckets=_SECONDS,
            registry=registry,
        )
        self.inference_seconds = Counter(
            "kairos_inference_seconds",
            "Time that calls have run, on the inference threads or the event loop, by class.",
            ["class"],
            registry=registry,
        )
        self.inference_cost_ratio = Histogram(
            "kairos_inference_cost_ratio",
            "Measured time of a call on an inference thread, relative to the estimate, by class.",
            ["class"],
            buckets=_RATIOS,
            registry=registry,
        )
        self.inference_abandoned = Counter(
            "kairos_inference_abandoned",
            "Calls that were given up because their client had gone.",
            registry=registry,
        )
        self.shadow_answers = Counter(
            "kairos_shadow_answers_total",
            "Queries to the shadow version, by outcome: compared, skipped or failed.",
            ["result"],
            registry=registry,
        )
        self.shadow_overlap = Histogram(
            "kairos_shadow_overlap",
            "Items that both the shadow and the response recommend, as a share of all of theirs.",
            buckets=_SHARES,
            registry=registry,
        )
        self.recommendation_clicks = Counter(
            "kairos_recommendation_clicks_total",
            "Events that name an item of a recommendation for their user, by the version that "
            "recommended it.",
            ["model_version"],
            registry=registry,
        )
        self.records_dropped = Counter(
            "kairos_recommendation_records_dropped_total",
            "Impressions that were not recorded: the buffer was full, the process ended while the "
            "database did not accept them, or it refused them for what they contain.",
            registry=registry,
        )
        self.database_queue_seconds = Histogram(
            "kairos_database_queue_seconds",
            "Time a database call waited for a thread of its lane: reads, writes or control.",
            ["lane"],
            buckets=_SECONDS,
            registry=registry,
        )
        self.database_in_progress = Gauge(
            "kairos_database_in_progress",
            "Database calls that wait for a thread of their lane or run on one.",
            ["lane"],
            multiprocess_mode="livesum",
            registry=registry,
        )
        self.background_task_failures = Counter(
            "kairos_background_task_failures_total",
            "Failed runs of the process's periodic tasks, each of which is repeated: defects, and "
            "outages from their second minute on.",
            ["task"],
            registry=registry,
        )
        self.shed_requests = Counter(
            "kairos_shed_requests_total",
            "Requests rejected to protect a resource: inference, the share of it that one caller "
            "has, the database, overviews, the bundle store, or versions that requests name.",
            ["reason"],
            registry=registry,
        )

        self.clock_offset_seconds = Gauge(
            "kairos_clock_offset_seconds",
            "The machine's clock minus the database's, which responses use; NaN until it answers.",
            multiprocess_mode="livemostrecent",
            registry=registry,
        )
        self.clock_offset_seconds.set(math.nan)

        self._initialize_labels()

    def _initialize_labels(self) -> None:
        """Set known labels to zero: `increase()` ignores the first value of a new label."""
        for result in ("accepted", "duplicate", "rejected"):
            self.events_ingested.labels(result)
        for result in ("activated", "refused"):
            self.model_swaps.labels(result)
        for fallback in ("none", "popular", "no_history"):
            self.recommendations.labels(fallback)
        for reason in (
            "inference",
            "share",
            "versions",
            "overviews",
            "store",
            "database_reads",
            "database_writes",
            "database_control",
        ):
            self.shed_requests.labels(reason)
        for lane in ("reads", "writes", "control"):
            self.database_queue_seconds.labels(lane)
            self.database_in_progress.labels(lane)
        for call_class in ("short", "long", "background"):
            self.inference_queue_seconds.labels(call_class)
            self.inference_seconds.labels(call_class)
            self.inference_cost_ratio.labels(call_class)

    def time_stage(self, stage: str) -> "_StageTimer":
        """Time a stage of a recommendation."""
        histogram = self._stages.get(stage)
        if histogram is None:
            histogram = self._stages[stage] = self.stage_seconds.labels(stage)
        return _StageTimer(histogram)

    def render(self) -> bytes:
        """Format all metrics in Prometheus's text format."""
        return generate_latest(self.reported)

    def clear(self, gauge: Gauge) -> None:
        """Remove the values of all labels of a gauge."""
        if not self.is_shared:
            gauge.clear()
            return
        # What is shared cannot be removed; collecting leaves NaN out.
        for family in gauge.collect():
            for sample in family.samples:
                gauge.labels(**sample.labels).set(math.nan)


@final
class _StageTimer:
    """Times its context; cheaper than a generator, as every recommendation has five."""

    __slots__ = ("_began", "_histogram")

    def __init__(self, histogram: Histogram) -> None:
        self._histogram = histogram

    def __enter__(self) -> None:
        self._began = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self._histogram.observe(time.perf_counter() - self._began)
