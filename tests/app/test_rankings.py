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
from tests.app.test_recommendations import ASKED_AT, ask, inline, stored
from tests.app.tiny_bundle import FIRST_AT, HOUR, ITEM_IDS, LAST_AT

RESPONSE_CONFIG = TypeAdapter(RankingAnswer)


def rank(client: Client, *item_ids: str, **asked: Any) -> dict[str, Any]:
    """The ranking of some items at `ASKED_AT`, checked against its schema."""
    body = {"query_time": format_instant(ASKED_AT), "item_ids": item_ids} | asked
    response = client.post("/v1/rankings", body)
    assert response.status_code == 200, response.text
    RESPONSE_CONFIG.validate_json(response.content)
    answer: dict[str, Any] = response.json()
    return answer


def ids(answer: dict[str, Any]) -> list[str]:
    return [item["item_id"] for item in answer["items"]]


def test_a_ranking_of_everything_is_the_recommendation_of_everything(client: Client) -> None:
    history = inline("i3", "i4", "i5")
    ranked = rank(client, *ITEM_IDS[::-1], history=history)
    recommended = ask(client, history=history, n=500, exclude_seen=False)
    assert ids(ranked) == [item["item_id"] for item in recommended["items"]]
    assert [item["score"] for item in ranked["items"]] == pytest.approx(
        [item["score"] for item in recommended["items"]], abs=1e-5
    )
    assert [item["rank"] for item in ranked["items"]] == list(range(1, len(ITEM_IDS) + 1))
    assert {item["reason"] for item in ranked["items"]} == {"model"}
    for field in ("model_version", "query_time", "history_used", "unknown_item_ids", "warnings"):
        assert ranked[field] == recommended[field]


def test_the_order_and_the_repetition_of_what_is_given_do_not_matter(client: Client) -> None:
    history = inline("i3", "i4")
    assert rank(client, "i7", "i1", "i9", history=history) == rank(
        client, "i9", "i7", "i9", "i1", "i1", history=history
    )


def test_unknown_items_come_last_as_they_were_given(client: Client) -> None:
    answer = rank(client, "new/ï", "i2", "newer", "i1", "new/ï", history=inline("i3", "gone"))
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


def test_items_that_are_all_unknown_are_no_error(client: Client) -> None:
    answer = rank(client, "b", "a", history=inline("i1"))
    assert [(item["item_id"], item["reason"]) for item in answer["items"]] == [
        ("b", "unknown"),
        ("a", "unknown"),
    ]


@pytest.mark.parametrize("asked", [{}, {"user_id": "nobody"}, {"history": []}])
def test_without_a_history_popularity_ranks(client: Client, asked: dict[str, Any]) -> None:
    answer = rank(client, "i5", "i0", "unknown", "i2", **asked)
    assert (answer["fallback"], answer["history_used"]) == ("no_history", 0)
    assert ids(answer) == ["i0", "i2", "i5", "unknown"]
    assert [item["reason"] for item in answer["items"]] == ["popular"] * 3 + ["unknown"]


def test_the_stored_history_ranks_like_the_inline_one(client_on_either: Client) -> None:
    client_on_either.post("/v1/events", stored("u", "i3", "i4", "i5"))
    inline_history = [{**event, "action": "view"} for event in inline("i3", "i4", "i5")]
    assert rank(client_on_either, *ITEM_IDS, user_id="u") == rank(
        client_on_either, *ITEM_IDS, history=inline_history
    )
    early = rank(client_on_either, "i1", user_id="u", query_time=format_instant(FIRST_AT + HOUR))
    assert early["history_used"] == 2


def test_what_is_deleted_or_not_available_is_ranked_all_the_same(client: Client) -> None:
    """The caller chose the items; the shelf only tells their titles and categories."""
    client.put(
        "/v1/items",
        {"items": [{"item_id": "i1", "title": "Neu", "categories": ["x"], "available_until": 0}]},
    )
    (item,) = rank(client, "i1", history=inline("i3"))["items"]
    assert (item["reason"], item["title"], item["categories"]) == ("model", "Neu", ["x"])


def test_a_version_can_be_insisted_on(settings: Settings, bundle_store: Path) -> None:
    other = tiny_bundle.publish(bundle_store, seed=2, activate=False)
    with running(settings) as client:
        by_default = rank(client, *ITEM_IDS, history=inline("i3"))
        pinned = rank(client, *ITEM_IDS, history=inline("i3"), model_version=other)
        assert pinned["model_version"] == other != by_default["model_version"]
        assert ids(pinned) != ids(by_default)
        body = {"item_ids": ["i1"], "model_version": "20200101T000000Z-000000000000"}
        problem(client.post("/v1/rankings", body), 404, "model_not_found")


def test_the_query_time_can_be_withheld(client: Client) -> None:
    scores = [
        rank(client, "i1", history=inline("i3"), query_time=at, query_time_withheld=withheld)[
            "items"
        ][0]["score"]
        for withheld in (True, False)
        for at in (format_instant(ASKED_AT), format_instant(ASKED_AT + 1000 * HOUR))
    ]
    assert scores[0] == pytest.approx(scores[1], abs=1e-6)
    assert scores[2] != pytest.approx(scores[3], abs=1e-6)


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({}, "missing"),
        ({"item_ids": []}, "too_short"),
        ({"item_ids": ["i1"] * 501}, "too_long"),
        ({"item_ids": "i1"}, "list_type"),
    ],
)
def test_a_broken_rule_is_named(client: Client, asked: dict[str, Any], code: str) -> None:
    error = problem(client.post("/v1/rankings", asked), 422, "validation_failed")["errors"][0]
    assert (error["where"], error["code"]) == ("#/item_ids", code)


def test_the_most_items_are_ranked(client: Client) -> None:
    unknown = [f"unknown {number}" for number in range(480)]
    history = inline(*(ITEM_IDS * 50))
    answer = rank(client, *ITEM_IDS, *unknown, history=history, query_time=format_instant(LAST_AT))
    assert len(answer["items"]) == 500
    assert answer["warnings"] == ["history_truncated"]
