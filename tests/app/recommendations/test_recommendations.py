"""POST /v1/recommendations."""

import threading
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from app.http.types import format_instant
from app.settings import Settings
from model.history import Event, Query
from model.inference.answers import Constraints
from model.store.store import BundleStore
from tests.app.client import Client, running
from tests.app.recommendations.recommendation_requests import (
    QUERY_TIME,
    attended,
    build_inline,
    build_stored,
    list_ids,
    recommend,
)
from tests.app.tiny_bundle import FIRST_AT, HEADS, HOUR, ITEM_IDS, LAST_AT, MAX_HISTORY


def test_an_answer_equals_that_of_the_bundle(client: Client, bundle_store: Path) -> None:
    answer = recommend(client, history=build_inline("i3", "i4", "i5"), n=5)
    predictor = BundleStore(bundle_store).open()
    events = tuple(Event(f"i{3 + number}", FIRST_AT + number * HOUR) for number in range(3))
    expected = predictor.recommend(Query(events, QUERY_TIME), Constraints(n=5))
    assert answer["model_version"] == predictor.version
    assert answer["query_time"] == format_instant(QUERY_TIME)
    assert answer["history_used"] == 3
    assert answer["fallback"] is None
    assert [(item["item_id"], item["rank"]) for item in answer["items"]] == [
        (item.item_id, rank) for rank, item in enumerate(expected.items, start=1)
    ]
    assert [item["score"] for item in answer["items"]] == pytest.approx(
        [item.score for item in expected.items], abs=1e-5
    )
    assert {item["reason"] for item in answer["items"]} == {"model"}
    best = answer["items"][0]
    assert best["title"] == f"Item {best['item_id'][1:]}"
    assert best["categories"] in (["even"], ["odd"])
    UUID(answer["recommendation_id"])


def test_a_request_looks_for_no_telemetry_provider(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise AssertionError("a provider was looked up")

    monkeypatch.setattr("opentelemetry.trace.get_tracer_provider", fail)
    monkeypatch.setattr("opentelemetry.metrics.get_meter_provider", fail)
    assert recommend(client)["items"]


def test_every_answer_has_an_id_of_its_own(shared_client: Client) -> None:
    one, other = (recommend(shared_client, history=build_inline("i1")) for _ in range(2))
    assert one.pop("recommendation_id") != other.pop("recommendation_id")
    assert one == other


def test_the_stored_history_answers_like_the_inline_one(client_on_either: Client) -> None:
    assert (
        client_on_either.post("/v1/events", build_stored("u", "i3", "i4", "i5")).json()["accepted"]
        == 3
    )
    from_store = recommend(client_on_either, user_id="u", explain="heads")
    from_request = recommend(
        client_on_either,
        history=[{**event, "action": "view"} for event in build_inline("i3", "i4", "i5")],
        explain="heads",
    )
    from_store.pop("recommendation_id"), from_request.pop("recommendation_id")
    assert from_store == from_request


def test_events_after_the_query_time_do_not_matter(client_on_either: Client) -> None:
    client_on_either.post("/v1/events", build_stored("u", "i3", "i4", "i5"))
    answer = recommend(
        client_on_either,
        user_id="u",
        query_time=format_instant(FIRST_AT + HOUR),
        explain="attention",
    )
    assert attended(answer) == ["i3", "i4"]
    assert answer["warnings"] == []


def test_inline_events_after_the_query_time_give_a_warning(shared_client: Client) -> None:
    answer = recommend(
        shared_client, history=build_inline("i3", "i4"), query_time=format_instant(FIRST_AT)
    )
    assert answer["history_used"] == 1
    assert answer["warnings"] == ["events_after_query_time"]


def test_an_inline_history_wins_over_the_stored_one(client: Client) -> None:
    client.post("/v1/events", build_stored("u", "i3"))
    answer = recommend(client, user_id="u", history=build_inline("i7"), explain="attention")
    assert attended(answer) == ["i7"]


def test_merging_counts_a_shared_event_once(client: Client) -> None:
    client.post("/v1/events", build_stored("u", "i3", "i4"))
    shared = {**build_inline("i3", "i4")[1], "action": "view"}
    late = {"item_id": "i5", "timestamp": format_instant(FIRST_AT + 5 * HOUR)}
    early = {"item_id": "i6", "timestamp": format_instant(FIRST_AT - HOUR)}
    answer = recommend(
        client, user_id="u", history=[late, shared, early], merge=True, explain="attention"
    )
    assert attended(answer) == ["i6", "i3", "i4", "i5"]


@pytest.mark.parametrize(
    "body",
    [{}, {"user_id": "nobody"}, {"history": []}, {"user_id": "nobody", "merge": True}],
    ids=["nothing", "unknown user", "empty history", "nothing to merge"],
)
def test_without_a_history_popular_items_are_recommended(
    shared_client: Client, body: dict[str, Any]
) -> None:
    answer = recommend(shared_client, **body, explain="attention", n=3)
    assert answer["fallback"] == "no_history"
    assert answer["history_used"] == 0
    assert answer["attention"] is None
    assert list_ids(answer) == ["i0", "i1", "i2"]
    assert {item["reason"] for item in answer["items"]} == {"popular"}


def test_unknown_items_are_named_and_skipped(shared_client: Client) -> None:
    answer = recommend(shared_client, history=build_inline("i1", "new/ï", "i2", "new/ï", "newer"))
    assert answer["unknown_item_ids"] == ["new/ï", "newer"]
    assert answer["history_used"] == 2
    only_unknown = recommend(shared_client, history=build_inline("newer"))
    assert only_unknown["fallback"] == "no_history"
    assert only_unknown["unknown_item_ids"] == ["newer"]


def test_attention_is_aligned_with_the_events_used(shared_client: Client) -> None:
    history = build_inline("i1", "unknown", "i2", "i3")
    answer = recommend(shared_client, history=history[::-1], explain="heads")
    attention = answer["attention"]
    assert (attention["layer"], attention["aggregation"]) == ("last", "mean_heads")
    assert attention["normalised"] is True
    assert attended(answer) == ["i1", "i2", "i3"]
    assert [event["title"] for event in attention["events"]] == ["Item 1", "Item 2", "Item 3"]
    assert [event["age_seconds"] for event in attention["events"]] == [36000.0, 28800.0, 25200.0]
    weights = [event["weight"] for event in attention["events"]]
    assert sum(weights) == pytest.approx(1, abs=1e-5)
    assert len(attention["heads"]) == HEADS
    means = [sum(head[index] for head in attention["heads"]) / HEADS for index in range(3)]
    assert weights == pytest.approx(means, abs=1e-6)


def test_heads_are_returned_only_on_request(shared_client: Client) -> None:
    history = build_inline("i1", "i2")
    assert (
        recommend(shared_client, history=history, explain="attention")["attention"]["heads"] is None
    )
    assert recommend(shared_client, history=history, explain="none")["attention"] is None
    assert recommend(shared_client, history=history)["attention"] is None


def test_items_can_be_excluded_and_included(shared_client: Client) -> None:
    history = build_inline("i1", "i2")
    everything = set(ITEM_IDS)
    assert set(
        list_ids(recommend(shared_client, history=history, n=500, strict=True))
    ) == everything - {
        "i1",
        "i2",
    }
    assert (
        set(list_ids(recommend(shared_client, history=history, n=500, exclude_seen=False)))
        == everything
    )
    chosen = recommend(
        shared_client,
        history=history,
        include_item_ids=["i1", "i5", "i6", "unknown"],
        exclude_item_ids=["i6"],
    )
    assert list_ids(chosen) == ["i5"]


def test_an_empty_list_of_allowed_items_allows_all(shared_client: Client) -> None:
    assert (
        len(recommend(shared_client, history=build_inline("i1"), include_item_ids=[])["items"])
        == 10
    )


def test_withholding_the_query_time_changes_the_scores(shared_client: Client) -> None:
    history = build_inline("i1", "i2", "i3")
    times = [format_instant(QUERY_TIME), format_instant(QUERY_TIME + 100 * HOUR)]
    given = [recommend(shared_client, history=history, query_time=time) for time in times]
    withheld = [
        recommend(shared_client, history=history, query_time=time, query_time_withheld=True)
        for time in times
    ]
    assert scores(given[0]) != pytest.approx(scores(given[1]), abs=1e-6)
    assert scores(withheld[0]) == pytest.approx(scores(withheld[1]), abs=1e-6)


def scores(answer: dict[str, Any]) -> list[float]:
    return [item["score"] for item in sorted(answer["items"], key=lambda item: item["item_id"])]


def test_the_query_time_is_now_unless_given(shared_client: Client) -> None:
    answer = shared_client.post("/v1/recommendations", {"history": build_inline("i1")}).json()
    assert answer["query_time"] > format_instant(LAST_AT)
    assert "beyond_training_window" in answer["warnings"]


def test_the_order_of_an_inline_history_does_not_matter(shared_client: Client) -> None:
    history = build_inline("i1", "i2", "i3", "i4")
    forwards = recommend(shared_client, history=history, explain="attention")
    backwards = recommend(shared_client, history=history[::-1], explain="attention")
    forwards.pop("recommendation_id"), backwards.pop("recommendation_id")
    assert forwards == backwards


def test_instants_may_be_texts_or_numbers(shared_client: Client) -> None:
    as_text = recommend(shared_client, history=build_inline("i1", "i2"))
    as_numbers = recommend(
        shared_client,
        history=[
            {"item_id": "i1", "timestamp": FIRST_AT // 1_000_000},
            {"item_id": "i2", "timestamp": (FIRST_AT + HOUR) / 1e6},
        ],
        query_time=QUERY_TIME // 1_000_000,
    )
    assert scores(as_text) == scores(as_numbers)


def test_a_long_history_is_cut_to_the_most_recent_events(settings: Settings) -> None:
    with running(settings.model_copy(update={"max_history": 3})) as client:
        client.post("/v1/events", build_stored("u", "i1", "i2", "i3", "i4", "i5"))
        assert attended(recommend(client, user_id="u", explain="attention")) == ["i3", "i4", "i5"]
        response = client.post(
            "/v1/recommendations", {"history": build_inline("i1", "i2", "i3", "i4")}
        )
        assert response.status_code == 422
        assert response.json()["detail"].startswith("an inline history holds at most 3 events")


def test_the_maximum_of_events_and_items_is_accepted(shared_client: Client) -> None:
    history = build_inline(*(ITEM_IDS * 50))
    answer = recommend(
        shared_client, history=history, query_time=format_instant(LAST_AT), n=500, explain="heads"
    )
    assert answer["history_used"] == MAX_HISTORY
    assert answer["warnings"] == ["history_truncated"]


@pytest.mark.parametrize(
    ("body", "where", "code"),
    [
        ({"n": 0}, "#/n", "greater_than_equal"),
        ({"n": 501}, "#/n", "less_than_equal"),
        ({"n": "10"}, "#/n", "int_type"),
        ({"n": 1.5}, "#/n", "int_type"),
        ({"n": 2**70}, "#/n", "int_type"),
        ({"n": None}, "#/n", "int_type"),
        ({"n": True}, "#/n", "int_type"),
        ({"diversity": 1.5}, "#/diversity", "less_than_equal"),
        ({"user_id": ""}, "#/user_id", "string_too_short"),
        ({"user_id": "x" * 257}, "#/user_id", "string_too_long"),
        ({"user_id": "a\0b"}, "#/user_id", "string_pattern_mismatch"),
        ({"user_id": 7}, "#/user_id", "string_type"),
        ({"history": [{"item_id": "i1"}]}, "#/history/0/timestamp", "missing"),
        ({"history": {}}, "#/history", "list_type"),
        ({"history": build_inline("i1") * 1001}, "#/history", "too_long"),
        (
            {"history": [{"item_id": "i1", "timestamp": "2026-01-01T00:00:00"}]},
            "#/history/0/timestamp",
            "instant_naive",
        ),
        (
            {"history": [{"item_id": "i1", "timestamp": 2**63}]},
            "#/history/0/timestamp",
            "instant_range",
        ),
        (
            {"history": [{"item_id": "i1", "timestamp": 0, "x": 1}]},
            "#/history/0/x",
            "extra_forbidden",
        ),
        ({"query_time": "0001-01-01T00:00:00+01:00"}, "#/query_time", "instant_range"),
        ({"query_time": True}, "#/query_time", "instant_type"),
        ({"explain": "everything"}, "#/explain", "literal_error"),
        ({"exclude_item_ids": ["i1"] * 1001}, "#/exclude_item_ids", "too_long"),
        ({"include_item_ids": "i1"}, "#/include_item_ids", "list_type"),
        ({"exclude_seen": "yes"}, "#/exclude_seen", "bool_type"),
        ([], "#", "model_attributes_type"),
        ("text", "#", "model_attributes_type"),
        ({"~a/b" * 40: 1}, "#/" + "~0a~1b" * 15, "extra_forbidden"),
    ],
)
def test_a_broken_rule_is_named(shared_client: Client, body: object, where: str, code: str) -> None:
    response = shared_client.post("/v1/recommendations", body)
    assert response.status_code == 422
    problem = response.json()
    assert problem["code"] == "validation_failed"
    assert {"where": where, "code": code} in [
        {"where": error["where"], "code": error["code"]} for error in problem["errors"]
    ]
    assert len(response.content) < 4000


@pytest.mark.parametrize("instant", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z"])
def test_extreme_query_times_are_accepted(shared_client: Client, instant: str) -> None:
    history = [{"item_id": "i1", "timestamp": "0001-01-01T00:00:00Z"}]
    answer = recommend(shared_client, history=history, query_time=instant, explain="attention")
    assert answer["history_used"] == 1
    assert all(isinstance(item["score"], float) for item in answer["items"])


def test_the_last_of_two_equal_keys_wins(shared_client: Client) -> None:
    body = b'{"n": 3, "n": 2}'
    response = shared_client.post(
        "/v1/recommendations", content=body, headers={"Content-Type": "application/json"}
    )
    assert len(response.json()["items"]) == 2


def test_requests_beyond_the_queue_are_shed(settings: Settings) -> None:
    with running(settings.model_copy(update={"inference_queue": 0})) as client:
        entered, leave = threading.Event(), threading.Event()

        def occupy() -> None:
            entered.set()
            leave.wait(10)

        inference = client.app.state.context.inference
        busy = client.portal.start_task_soon(inference.call, occupy)
        assert entered.wait(10)
        response = client.post("/v1/recommendations", {"history": build_inline("i1")})
        leave.set()
        busy.result(10)
        assert response.status_code == 503
        assert response.json()["code"] == "overloaded"
        assert int(response.headers["Retry-After"]) >= 1
        assert client.metric("kairos_shed_requests_total", reason="inference") == 1
        assert recommend(client, history=build_inline("i1"))["history_used"] == 1


def test_inference_does_not_block_the_event_loop(client: Client) -> None:
    entered, leave = threading.Event(), threading.Event()

    def occupy() -> None:
        entered.set()
        leave.wait(10)

    busy = client.portal.start_task_soon(client.app.state.context.inference.call, occupy)
    assert entered.wait(10)
    assert client.get("/health/live").status_code == 200
    assert not busy.done()
    leave.set()
    busy.result(10)


def test_answers_are_counted_by_their_fallback(client: Client) -> None:
    recommend(client, history=build_inline("i1"))
    recommend(client)
    recommend(client, history=build_inline("i1"), n=500)
    assert client.metric("kairos_recommendations_total", fallback="none") == 2
    assert client.metric("kairos_recommendations_total", fallback="no_history") == 1
    for stage, body in {"history": 3, "filter": 8, "encode": 2, "search": 2}.items():
        assert client.metric("kairos_stage_duration_seconds_count", stage=stage) == body
