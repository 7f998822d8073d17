"""POST /v1/recommendations: filters and diversity."""

from collections.abc import Iterator
from typing import Any

import pytest

from app.http.types import format_instant
from app.settings import Settings
from tests.app.client import Client, running
from tests.app.recommendations.recommendation_requests import (
    QUERY_TIME,
    build_inline,
    build_stored,
    list_ids,
    recommend,
)
from tests.app.tiny_bundle import HOUR, ITEM_IDS

HISTORY = build_inline("i1", "i2", "i3")
EVEN = {item_id for item_id in ITEM_IDS if int(item_id[1:]) % 2 == 0}
ODD = set(ITEM_IDS) - EVEN


def all_of(client: Client, **body: Any) -> set[str]:
    """Request every allowed item."""
    body = {"history": HISTORY, "n": 500, "exclude_seen": False} | body
    return set(list_ids(recommend(client, **body)))


def describe(client: Client, item_id: str, **description: Any) -> None:
    item = {"item_id": item_id, **description}
    assert client.put("/v1/items", {"items": [item]}).status_code == 200


@pytest.mark.parametrize(
    ("categories", "expected"),
    [
        ({}, EVEN | ODD),
        ({"any": ["even"]}, EVEN),
        ({"any": ["even", "odd"]}, EVEN | ODD),
        ({"none": ["even"]}, ODD),
        ({"any": ["even"], "none": ["odd"]}, EVEN),
        ({"any": ["even"], "none": ["even"]}, set()),
        ({"any": ["unknown"]}, set()),
        ({"none": ["unknown"]}, EVEN | ODD),
    ],
)
def test_categories_filter_the_items(
    shared_client: Client, categories: dict[str, list[str]], expected: set[str]
) -> None:
    assert all_of(shared_client, categories=categories) == expected


def test_stored_categories_apply_to_model_and_popular_items(client: Client) -> None:
    describe(client, "i0", categories=["odd", "new"])
    assert all_of(client, categories={"any": ["new"]}) == {"i0"}
    assert "i0" not in all_of(client, categories={"any": ["even"]})
    cold = recommend(client, user_id="nobody", categories={"any": ["odd"]}, n=2)
    assert list_ids(cold) == ["i0", "i1"]
    assert cold["items"][0]["categories"] == ["odd", "new"]


def test_items_unavailable_at_the_query_time_are_excluded(client: Client) -> None:
    describe(client, "i5", available_from=format_instant(QUERY_TIME + 1))
    describe(client, "i6", available_from=format_instant(QUERY_TIME))
    describe(client, "i7", available_until=format_instant(QUERY_TIME))
    describe(client, "i8", available_until=format_instant(QUERY_TIME + 1))
    assert set(ITEM_IDS) - all_of(client) == {"i5", "i7"}
    assert set(ITEM_IDS) - all_of(client, query_time=format_instant(QUERY_TIME + HOUR)) == {
        "i7",
        "i8",
    }
    assert all_of(client, available_only=False) == set(ITEM_IDS)


def test_a_deleted_item_is_excluded_until_stored_again(client: Client) -> None:
    describe(client, "i5")
    client.request("DELETE", "/v1/items/i5")
    assert set(ITEM_IDS) - all_of(client) == {"i5"}
    assert set(ITEM_IDS) - all_of(client, available_only=False) == {"i5"}
    assert list_ids(recommend(client, history=HISTORY, include_item_ids=["i5"])) == []
    describe(client, "i5")
    assert all_of(client) == set(ITEM_IDS)


def test_filters_are_combined(client: Client) -> None:
    describe(client, "i4", available_until=0)
    body = {
        "include_item_ids": ["i2", "i4", "i6", "i8", "i9"],
        "exclude_item_ids": ["i8"],
        "categories": {"any": ["even"]},
        "exclude_seen": True,
    }
    assert all_of(client, **body) == {"i6"}


def test_popular_items_fill_up_unless_strict(shared_client: Client) -> None:
    cold = recommend(shared_client, user_id="nobody", n=3)
    assert [item["reason"] for item in cold["items"]] == ["popular"] * 3
    strict = recommend(shared_client, user_id="nobody", n=3, strict=True)
    assert (strict["items"], strict["fallback"]) == ([], "no_history")


def test_filtered_items_are_not_filled_up_with_others(shared_client: Client) -> None:
    answer = recommend(shared_client, history=HISTORY, include_item_ids=["i5", "i6"], n=4)
    assert (sorted(list_ids(answer)), answer["fallback"]) == (["i5", "i6"], None)


def test_a_diverse_answer_starts_with_the_best_item(
    shared_client: Client,
) -> None:
    plain = recommend(shared_client, history=HISTORY, n=5)
    diverse = recommend(shared_client, history=HISTORY, n=5, diversity=0.9)
    assert list_ids(recommend(shared_client, history=HISTORY, n=5, diversity=0.0)) == list_ids(
        plain
    )
    assert list_ids(diverse)[0] == list_ids(plain)[0]
    assert set(list_ids(diverse)) != set(list_ids(plain))
    assert alikeness(shared_client, list_ids(diverse)) < alikeness(shared_client, list_ids(plain))
    assert [item["rank"] for item in diverse["items"]] == [1, 2, 3, 4, 5]


def alikeness(client: Client, item_ids: list[str]) -> float:
    """Sum the cosine similarities between the items."""
    found = 0.0
    for item_id in item_ids:
        others = client.get(f"/v1/items/{item_id}/similar?n=500").json()["items"]
        found += sum(other["score"] for other in others if other["item_id"] in item_ids)
    return found


def test_a_diverse_answer_respects_the_filters(client: Client) -> None:
    describe(client, "i4", available_until=0)
    answer = recommend(client, history=HISTORY, n=5, diversity=0.7, categories={"any": ["even"]})
    assert set(list_ids(answer)) <= EVEN - {"i2", "i4"}
    assert len(list_ids(answer)) == 5


@pytest.mark.parametrize(
    ("body", "where", "code"),
    [
        ({"diversity": -0.1}, "#/diversity", "greater_than_equal"),
        ({"diversity": 1.1}, "#/diversity", "less_than_equal"),
        ({"categories": []}, "#/categories", "model_attributes_type"),
        ({"categories": {"all": []}}, "#/categories/all", "extra_forbidden"),
        ({"categories": {"any": ["c"] * 101}}, "#/categories/any", "too_long"),
        ({"available_only": None}, "#/available_only", "bool_type"),
    ],
)
def test_a_broken_rule_is_named(
    shared_client: Client, body: dict[str, Any], where: str, code: str
) -> None:
    response = shared_client.post("/v1/recommendations", body)
    assert response.status_code == 422
    errors = {(error["where"], error["code"]) for error in response.json()["errors"]}
    assert (where, code) in errors, errors


@pytest.mark.parametrize(
    "body",
    [
        {"categories": {"any": ["unknown"]}},
        {"include_item_ids": ["unknown"]},
        {"include_item_ids": ["i4"], "exclude_item_ids": ["i4"]},
        {"include_item_ids": ["i1"]},
        {"user_id": "nobody", "history": None, "include_item_ids": ["unknown"]},
    ],
)
def test_filters_that_match_nothing_give_a_warning(
    shared_client: Client, body: dict[str, Any]
) -> None:
    answer = recommend(shared_client, **{"history": HISTORY, **body})
    assert answer["items"] == []
    assert "filters_match_nothing" in answer["warnings"]


def test_filters_that_match_something_give_no_warning(shared_client: Client) -> None:
    strict = recommend(shared_client, user_id="nobody", strict=True)
    assert strict["items"] == []
    some = recommend(shared_client, history=HISTORY, include_item_ids=["i4", "unknown"])
    assert list_ids(some) == ["i4"]
    assert "filters_match_nothing" not in strict["warnings"] + some["warnings"]


@pytest.fixture
def long_history(migrated_database_url: str, settings: Settings) -> Iterator[Client]:
    """A service that reads histories of three events, with a user of nine."""
    changed = {"database_url": migrated_database_url, "max_history": 3}
    with running(settings.model_copy(update=changed)) as client:
        seen = build_stored("u", *(f"i{number}" for number in range(9)))
        assert client.post("/v1/events", seen).json()["accepted"] == 9
        yield client


def test_items_seen_before_the_history_are_left_out(long_history: Client) -> None:
    answer = recommend(long_history, user_id="u", n=500)
    assert answer["history_used"] == 3
    assert set(list_ids(answer)) == set(ITEM_IDS) - {f"i{number}" for number in range(9)}
    assert answer["warnings"] == []
    simple = long_history.get("/v1/users/u/recommendations?n=500").json()
    assert set(list_ids(simple)) == set(list_ids(answer))
    again = recommend(long_history, user_id="u", n=500, exclude_seen=False)
    assert set(list_ids(again)) == set(ITEM_IDS)


def test_items_seen_after_the_query_time_are_not_left_out(long_history: Client) -> None:
    early = format_instant(QUERY_TIME - 6 * HOUR)
    answer = recommend(long_history, user_id="u", n=500, query_time=early)
    assert set(list_ids(answer)) == set(ITEM_IDS) - {f"i{number}" for number in range(5)}


def test_an_inline_history_alone_decides_what_was_seen(long_history: Client) -> None:
    inline = build_inline("i10", "i11", "i12")
    alone = recommend(long_history, user_id="u", history=inline, n=500)
    assert set(list_ids(alone)) == set(ITEM_IDS) - {"i10", "i11", "i12"}
    merged = recommend(long_history, user_id="u", history=inline, merge=True, n=500)
    assert not {*list_ids(merged)} & {f"i{number}" for number in [*range(9), 10, 11, 12]}


def test_seen_items_beyond_the_bound_give_a_warning(
    long_history: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.histories.service.MOST_SEEN_EVENTS", 8)
    answer = recommend(long_history, user_id="u", n=500)
    assert set(list_ids(answer)) & {f"i{number}" for number in range(9)} == {"i0"}
    assert answer["warnings"] == ["seen_items_truncated"]
    monkeypatch.setattr("app.histories.service.MOST_SEEN_EVENTS", 9)
    assert recommend(long_history, user_id="u", n=500)["warnings"] == []
