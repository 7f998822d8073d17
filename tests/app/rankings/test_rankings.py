"""POST /v1/rankings."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from app.http.types import format_instant
from app.rankings.schemas import RankingAnswer
from app.settings import Settings
from tests.app import tiny_bundle
from tests.app.client import Client, problem, running
from tests.app.recommendations.recommendation_requests import (
    QUERY_TIME,
    build_inline,
    build_stored,
    recommend,
)
from tests.app.tiny_bundle import FIRST_AT, HOUR, ITEM_IDS, LAST_AT

RESPONSE_CONFIG = TypeAdapter(RankingAnswer)


def rank(client: Client, *item_ids: str, **body: Any) -> dict[str, Any]:
    """Request a ranking of items at `QUERY_TIME`; check its schema."""
    body = {"query_time": format_instant(QUERY_TIME), "item_ids": item_ids} | body
    response = client.post("/v1/rankings", body)
    assert response.status_code == 200, response.text
    RESPONSE_CONFIG.validate_json(response.content)
    answer: dict[str, Any] = response.json()
    return answer


def list_ids(answer: dict[str, Any]) -> list[str]:
    return [item["item_id"] for item in answer["items"]]


def test_a_ranking_of_all_items_equals_the_recommendation(shared_client: Client) -> None:
    history = build_inline("i3", "i4", "i5")
    ranked = rank(shared_client, *ITEM_IDS[::-1], history=history)
    recommended = recommend(shared_client, history=history, n=500, exclude_seen=False)
    assert list_ids(ranked) == [item["item_id"] for item in recommended["items"]]
    assert [item["score"] for item in ranked["items"]] == pytest.approx(
        [item["score"] for item in recommended["items"]], abs=1e-5
    )
    assert [item["rank"] for item in ranked["items"]] == list(range(1, len(ITEM_IDS) + 1))
    assert {item["reason"] for item in ranked["items"]} == {"model"}
    for field in ("model_version", "query_time", "history_used", "unknown_item_ids", "warnings"):
        assert ranked[field] == recommended[field]


def test_order_and_duplicates_of_the_items_do_not_matter(shared_client: Client) -> None:
    history = build_inline("i3", "i4")
    assert rank(shared_client, "i7", "i1", "i9", history=history) == rank(
        shared_client, "i9", "i7", "i9", "i1", "i1", history=history
    )


def test_unknown_items_come_last_as_they_were_given(shared_client: Client) -> None:
    answer = rank(
        shared_client, "new/ï", "i2", "newer", "i1", "new/ï", history=build_inline("i3", "gone")
    )
    known = answer["items"][:2]
    assert {item["item_id"] for item in known} == {"i1", "i2"}
    assert answer["items"][2:] == [
        {
            "item_id": item_id,
            "score": None,
            "rank": rank,
            "reason": "unknown",
            "title": None,
            "categories": [],
        }
        for rank, item_id in [(3, "new/ï"), (4, "newer")]
    ]
    assert answer["unknown_item_ids"] == ["gone"]


def test_a_ranking_of_unknown_items_succeeds(shared_client: Client) -> None:
    answer = rank(shared_client, "b", "a", history=build_inline("i1"))
    assert [(item["item_id"], item["reason"]) for item in answer["items"]] == [
        ("b", "unknown"),
        ("a", "unknown"),
    ]


@pytest.mark.parametrize("body", [{}, {"user_id": "nobody"}, {"history": []}])
def test_without_a_history_popularity_ranks(shared_client: Client, body: dict[str, Any]) -> None:
    answer = rank(shared_client, "i5", "i0", "unknown", "i2", **body)
    assert (answer["fallback"], answer["history_used"]) == ("no_history", 0)
    assert list_ids(answer) == ["i0", "i2", "i5", "unknown"]
    assert [item["reason"] for item in answer["items"]] == ["popular"] * 3 + ["unknown"]


def test_the_stored_history_ranks_like_the_inline_one(client_on_either: Client) -> None:
    client_on_either.post("/v1/events", build_stored("u", "i3", "i4", "i5"))
    inline_history = [{**event, "action": "view"} for event in build_inline("i3", "i4", "i5")]
    assert rank(client_on_either, *ITEM_IDS, user_id="u") == rank(
        client_on_either, *ITEM_IDS, history=inline_history
    )
    early = rank(client_on_either, "i1", user_id="u", query_time=format_instant(FIRST_AT + HOUR))
    assert early["history_used"] == 2


def test_deleted_and_unavailable_items_are_ranked(client: Client) -> None:
    """The caller chose the items; stored items only add titles and categories."""
    client.put(
        "/v1/items",
        {"items": [{"item_id": "i1", "title": "Neu", "categories": ["x"], "available_until": 0}]},
    )
    (item,) = rank(client, "i1", history=build_inline("i3"))["items"]
    assert (item["reason"], item["title"], item["categories"]) == ("model", "Neu", ["x"])


def test_a_version_can_be_requested(settings: Settings, bundle_store: Path) -> None:
    other = tiny_bundle.publish(bundle_store, seed=2, activate=False)
    with running(settings) as client:
        by_default = rank(client, *ITEM_IDS, history=build_inline("i3"))
        pinned = rank(client, *ITEM_IDS, history=build_inline("i3"), model_version=other)
        assert pinned["model_version"] == other != by_default["model_version"]
        assert list_ids(pinned) != list_ids(by_default)
        body = {"item_ids": ["i1"], "model_version": "20200101T000000Z-000000000000"}
        problem(client.post("/v1/rankings", body), 404, "model_not_found")


def test_the_query_time_can_be_withheld(shared_client: Client) -> None:
    scores = [
        rank(
            shared_client,
            "i1",
            history=build_inline("i3"),
            query_time=at,
            query_time_withheld=withheld,
        )["items"][0]["score"]
        for withheld in (True, False)
        for at in (format_instant(QUERY_TIME), format_instant(QUERY_TIME + 1000 * HOUR))
    ]
    assert scores[0] == pytest.approx(scores[1], abs=1e-6)
    assert scores[2] != pytest.approx(scores[3], abs=1e-6)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "missing"),
        ({"item_ids": []}, "too_short"),
        ({"item_ids": ["i1"] * 501}, "too_long"),
        ({"item_ids": "i1"}, "list_type"),
    ],
)
def test_a_broken_rule_is_named(shared_client: Client, body: dict[str, Any], code: str) -> None:
    error = problem(shared_client.post("/v1/rankings", body), 422, "validation_failed")["errors"][0]
    assert (error["where"], error["code"]) == ("#/item_ids", code)


def test_the_maximum_of_items_is_ranked(shared_client: Client) -> None:
    unknown = [f"unknown {number}" for number in range(480)]
    history = build_inline(*(ITEM_IDS * 50))
    answer = rank(
        shared_client, *ITEM_IDS, *unknown, history=history, query_time=format_instant(LAST_AT)
    )
    assert len(answer["items"]) == 500
    assert answer["warnings"] == ["history_truncated"]
