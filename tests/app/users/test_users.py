"""GET /v1/users, on both databases."""

import pytest

from tests.app.client import Client


def see(client: Client, *user_ids: str) -> None:
    """Store one event per mention of each user."""
    events = [
        {"user_id": user_id, "item_id": "i1", "action": "view", "timestamp": 1767225600 + number}
        for number, user_id in enumerate(user_ids)
    ]
    assert client.post("/v1/events", {"events": events}).json()["accepted"] == len(events)


def listed(client: Client, **query: str) -> list[str]:
    return [user["user_id"] for user in client.get("/v1/users", params=query).json()["users"]]


def test_users_are_listed_with_their_events(client_on_either: Client) -> None:
    see(client_on_either, "b", "a", "b")
    assert client_on_either.get("/v1/users").json() == {
        "users": [
            {"user_id": "a", "events": 1, "last_event_at": "2026-01-01T00:00:01Z"},
            {"user_id": "b", "events": 2, "last_event_at": "2026-01-01T00:00:02Z"},
        ]
    }


def test_a_prefix_is_literal(client_on_either: Client) -> None:
    see(client_on_either, "an", "ann", "anna", "Ann", "a_n", "a%", "b", "an🦊", "ao")
    assert listed(client_on_either, prefix="an") == ["an", "ann", "anna", "an🦊"]
    assert listed(client_on_either, prefix="a_") == ["a_n"]
    assert listed(client_on_either, prefix="a%") == ["a%"]
    assert listed(client_on_either, prefix="an", limit="2") == ["an", "ann"]
    assert listed(client_on_either, prefix="zz") == []


def test_a_history_comes_newest_first(client_on_either: Client) -> None:
    see(client_on_either, "u/1", "u/1", "other", "u/1")
    answer = client_on_either.get("/v1/users/u%2F1", params={"limit": 2}).json()
    assert answer["user_id"] == "u/1"
    assert [event["timestamp"] for event in answer["events"]] == [
        "2026-01-01T00:00:03Z",
        "2026-01-01T00:00:01Z",
    ]
    assert answer["first_event_at"] == "2026-01-01T00:00:00Z"
    assert answer["stored_events"] == 3


def test_an_unknown_user_has_no_events(shared_client: Client) -> None:
    response = shared_client.get("/v1/users/nobody")
    assert (response.status_code, response.json()) == (
        200,
        {"user_id": "nobody", "events": [], "first_event_at": None, "stored_events": 0},
    )


@pytest.mark.parametrize("query", ["limit=0", "limit=501", "limit=x", "prefix=", "prefix=%00"])
def test_a_query_that_breaks_a_rule_is_refused(shared_client: Client, query: str) -> None:
    response = shared_client.get(f"/v1/users?{query}")
    assert response.status_code == 422
    assert response.json()["errors"][0]["where"] == "query." + query.partition("=")[0]
