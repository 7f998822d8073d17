"""Probes and metrics."""

import re

from prometheus_client.parser import text_string_to_metric_families

from app.main import create_app
from tests.app.client import Client

DOCUMENTED = {
    "http_requests",
    "http_request_duration_seconds",
    "kairos_connections_closed",
    "kairos_recommendations",
    "kairos_stage_duration_seconds",
    "kairos_shadow_answers",
    "kairos_shadow_overlap",
    "kairos_recommendation_clicks",
    "kairos_recommendation_records_dropped",
    "kairos_history_length",
    "kairos_events_ingested",
    "kairos_event_lag_seconds",
    "kairos_model_info",
    "kairos_pointer_faults",
    "kairos_model_loaded_timestamp_seconds",
    "kairos_model_swaps",
    "kairos_index_items",
    "kairos_inference_in_progress",
    "kairos_inference_abandoned",
    "kairos_inference_cost_ratio",
    "kairos_inference_queue_seconds",
    "kairos_inference_seconds",
    "kairos_training_runs",
    "kairos_offline_metric",
    "kairos_shed_requests",
    "kairos_clock_offset_seconds",
    "kairos_database_queue_seconds",
    "kairos_database_in_progress",
    "kairos_background_task_failures",
}


def test_a_running_service_is_live_and_ready(client: Client) -> None:
    assert client.get("/health/live").json() == {"status": "live"}
    ready = client.get("/health/ready")
    assert ready.status_code == 200
    parts = dict.fromkeys(("model", "database", "writes", "tasks", "process"), "ok")
    assert ready.json() == {"status": "ready"} | parts


def test_the_metrics_page_holds_every_documented_metric(client: Client) -> None:
    page = client.get("/metrics")
    assert page.headers["Content-Type"].startswith("text/plain; version=")
    families = {
        family.name: family
        for family in text_string_to_metric_families(page.text)
        if not family.name.endswith("_created")
    }
    assert families.keys() == DOCUMENTED
    assert all(family.documentation.endswith(".") for family in families.values())


def test_requests_are_counted_by_template_and_status(client: Client) -> None:
    requests = [
        ("GET", "/v1/items/secret-item", "/v1/items/{item_id:path}", 404),
        ("GET", "/v1/users/secret-user", "/v1/users/{user_id:path}", 200),
        ("GET", "/v1/recommendations", "/v1/recommendations", 405),
        ("GET", "/v1/models/secret", "/v1/models/{version}", 404),
        ("GET", "/secret", "unmatched", 404),
        ("GET", "/openapi.json", "/openapi.json", 200),
        ("GET", "/dashboard/secret.js", "/dashboard/{path:path}", 404),
    ]
    for method, path, route, status in requests:
        assert client.request(method, path).status_code == status
        labels = {"method": method, "route": route, "status": str(status)}
        assert client.metric("http_requests_total", **labels) == 1, path
    client.request("BREW", "/secret")
    labels = {"method": "other", "route": "unmatched", "status": "404"}
    assert client.metric("http_requests_total", **labels) == 1
    assert not re.search("secret|BREW", client.get("/metrics").text)


def test_two_applications_do_not_share_their_metrics(client: Client) -> None:
    client.get("/health/live")
    other = create_app(client.app.state.context.settings)
    assert b"health" not in other.state.context.metrics.render()
