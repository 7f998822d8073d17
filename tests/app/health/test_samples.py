"""GET /v1/metrics."""

from datetime import UTC, datetime
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from app.health.samples import collect_samples
from app.observability.metrics import Metrics
from app.settings import Settings
from tests.app.client import Client, running
from tests.processes import eventually

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def read_families(client: Client) -> dict[str, dict[str, Any]]:
    return {metric["name"]: metric for metric in client.get("/v1/metrics").json()["metrics"]}


def scrape_prometheus(client: Client) -> Samples:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(client.get("/metrics").text)
        for sample in family.samples
        if not sample.name.endswith("_created")
    }


def read_samples(client: Client) -> Samples:
    return {
        (sample["name"], frozenset(sample["labels"].items())): sample["value"]
        for metric in client.get("/v1/metrics").json()["metrics"]
        for sample in metric["samples"]
    }


def test_the_values_are_those_that_prometheus_scrapes(settings: Settings) -> None:
    idle = {"poll_interval_seconds": 600, "recommendation_buffer": 0}
    with running(settings.model_copy(update=idle)) as client:
        client.post("/v1/recommendations", {"user_id": "u", "n": 2})
        for read in (read_samples, scrape_prometheus):  # both routes then have a sample
            read(client)

        def read_moved() -> set[str | None]:
            scraped, values = scrape_prometheus(client), read_samples(client)
            assert values.keys() == scraped.keys()
            assert len(values) > 100
            moved = {key for key in values if values[key] != scraped[key]}
            return {dict(labels).get("route") for _, labels in moved}

        # The tasks that run at the start use the database.
        eventually(lambda: read_moved() == {"/metrics"})


def test_metrics_have_the_names_and_kinds_of_prometheus(client: Client) -> None:
    families = read_families(client)
    assert families["http_requests_total"]["kind"] == "counter"
    assert families["kairos_index_items"] == {
        "name": "kairos_index_items",
        "kind": "gauge",
        "samples": [{"name": "kairos_index_items", "labels": {}, "value": 20.0}],
    }
    assert families["kairos_history_length"]["kind"] == "histogram"
    names = {sample["name"] for sample in families["kairos_history_length"]["samples"]}
    assert names == {f"kairos_history_length_{part}" for part in ("bucket", "count", "sum")}


def test_every_process_has_its_own_instance_name(client: Client, settings: Settings) -> None:
    one, again = (client.get("/v1/metrics").json() for _ in range(2))
    with running(settings) as other:
        different = other.get("/v1/metrics").json()
    assert one["instance"] == again["instance"] != different["instance"]
    assert one["started_at"] == again["started_at"] < different["started_at"]
    at = datetime.fromisoformat(one["at"])
    assert one["started_at"] < one["at"] <= again["at"]
    assert abs((datetime.now(UTC) - at).total_seconds()) < 60


def test_nan_values_are_left_out() -> None:
    metrics = Metrics()
    metrics.index_items.set(float("nan"))
    (items,) = (m for m in collect_samples(metrics).metrics if m.name == "kairos_index_items")
    assert items.samples == ()
