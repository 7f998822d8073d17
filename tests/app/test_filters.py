"""POST /v1/recommendations: which items may be answered."""

from typing import Any

import pytest

from app.http.types import format_instant
from tests.app.client import Client
from tests.app.test_recommendations import ASKED_AT, ask, ids, inline
from tests.app.tiny_bundle import HOUR, ITEM_IDS

HISTORY = inline("i1", "i2", "i3")
EVEN = {item_id for item_id in ITEM_IDS if int(item_id[1:]) % 2 == 0}
ODD = set(ITEM_IDS) - EVEN


def all_of(client: Client, **asked: Any) -> set[str]:
    """Every item that may be answered."""
    asked = {"history": HISTORY, "n": 500, "exclude_seen": False} | asked
    return set(ids(ask(client, **asked)))


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
        ({"any": ["nobody has heard of"]}, set()),
        ({"none": ["nobody has heard of"]}, EVEN | ODD),
    ],
)
def test_categories_say_which_items_may_be_answered(
    client: Client, categories: dict[str, list[str]], expected: set[str]
) -> None:
    assert all_of(client, categories=categories) == expected


def test_the_category_last_stored_holds_for_model_and_popular_items(client: Client) -> None:
    describe(client, "i0", categories=["odd", "new"])
    assert all_of(client, categories={"any": ["new"]}) == {"i0"}
    assert "i0" not in all_of(client, categories={"any": ["even"]})
    cold = ask(client, user_id="nobody", categories={"any": ["odd"]}, n=2)
    assert ids(cold) == ["i0", "i1"]
    assert cold["items"][0]["categories"] == ["odd", "new"]


def test_what_is_not_available_at_the_query_time_is_left_out(client: Client) -> None:
    describe(client, "i5", available_from=format_instant(ASKED_AT + 1))
    describe(client, "i6", available_from=format_instant(ASKED_AT))
    describe(client, "i7", available_until=format_instant(ASKED_AT))
    describe(client, "i8", available_until=format_instant(ASKED_AT + 1))
    assert set(ITEM_IDS) - all_of(client) == {"i5", "i7"}
    assert set(ITEM_IDS) - all_of(client, query_time=format_instant(ASKED_AT + HOUR)) == {
        "i7",
        "i8",
    }
    assert all_of(client, available_only=False) == set(ITEM_IDS)


def test_a_deleted_item_is_never_answered_until_it_is_stored_again(client: Client) -> None:
    describe(client, "i5")
    client.request("DELETE", "/v1/items/i5")
    assert set(ITEM_IDS) - all_of(client) == {"i5"}
    assert set(ITEM_IDS) - all_of(client, available_only=False) == {"i5"}
    assert ids(ask(client, history=HISTORY, include_item_ids=["i5"])) == []
    describe(client, "i5")
    assert all_of(client) == set(ITEM_IDS)


def test_filters_hold_together(client: Client) -> None:
    describe(client, "i4", available_until=0)
    asked = {
        "include_item_ids": ["i2", "i4", "i6", "i8", "i9"],
        "exclude_item_ids": ["i8"],
        "categories": {"any": ["even"]},
        "exclude_seen": True,
    }
    assert all_of(client, **asked) == {"i6"}


def test_popular_items_fill_up_unless_it_is_strict(client: Client) -> None:
    cold = ask(client, user_id="nobody", n=3)
    assert [item["reason"] for item in cold["items"]] == ["popular"] * 3
    strict = ask(client, user_id="nobody", n=3, strict=True)
    assert (strict["items"], strict["fallback"]) == ([], "no_history")


def test_what_may_not_be_answered_is_no_reason_to_fill_up(client: Client) -> None:
    answer = ask(client, history=HISTORY, include_item_ids=["i5", "i6"], n=4)
    assert (sorted(ids(answer)), answer["fallback"]) == (["i5", "i6"], None)


def test_a_diverse_answer_begins_with_the_best_and_goes_on_with_what_is_unlike_it(
    client: Client,
) -> None:
    plain = ask(client, history=HISTORY, n=5)
    diverse = ask(client, history=HISTORY, n=5, diversity=0.9)
    assert ids(ask(client, history=HISTORY, n=5, diversity=0.0)) == ids(plain)
    assert ids(diverse)[0] == ids(plain)[0]
    assert set(ids(diverse)) != set(ids(plain))
    assert alikeness(client, ids(diverse)) < alikeness(client, ids(plain))
    assert [item["rank"] for item in diverse["items"]] == [1, 2, 3, 4, 5]


def alikeness(client: Client, item_ids: list[str]) -> float:
    """The sum of the cosines between the items."""
    found = 0.0
    for item_id in item_ids:
        others = client.get(f"/v1/items/{item_id}/similar?n=500").json()["items"]
        found += sum(other["score"] for other in others if other["item_id"] in item_ids)
    return found


def test_a_diverse_answer_keeps_to_the_filters(client: Client) -> None:
    describe(client, "i4", available_until=0)
    answer = ask(client, history=HISTORY, n=5, diversity=0.7, categories={"any": ["even"]})
    assert set(ids(answer)) <= EVEN - {"i2", "i4"}
    assert len(ids(answer)) == 5


@pytest.mark.parametrize(
    ("asked", "where", "code"),
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
    client: Client, asked: dict[str, Any], where: str, code: str
) -> None:
    response = client.post("/v1/recommendations", asked)
    assert response.status_code == 422
    errors = {(error["where"], error["code"]) for error in response.json()["errors"]}
    assert (where, code) in errors, errors
