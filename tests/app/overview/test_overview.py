"""Samples of users: who changes, who would be recommended an item, examples; on both databases."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.app import tiny_bundle
from tests.app.client import Client, problem

END = datetime.fromtimestamp(tiny_bundle.LAST_AT / 1e6, UTC)


def send(client: Client, *sent: tuple[str, str, timedelta]) -> None:
    """Store events: user, item, and how long before the end of the training data."""
    events = [
        {
            "user_id": user_id,
            "item_id": item_id,
            "action": "view" if number % 2 else "buy",
            "timestamp": (END - before).isoformat(),
        }
        for number, (user_id, item_id, before) in enumerate(sent)
    ]
    assert client.post("/v1/events", {"events": events}).json()["accepted"] == len(events)


def get(client: Client, path: str, **query: Any) -> dict[str, Any]:
    response = client.get(path, params=query)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def list_best(client: Client, user_id: str, at: datetime, n: int = 10) -> list[str]:
    """The items that are recommended to a user, without popular ones to fill up."""
    body = {"user_id": user_id, "n": n, "query_time": at.isoformat(), "strict": True}
    items = client.post("/v1/recommendations", body).json()["items"]
    return [item["item_id"] for item in items]


def days(number: float) -> timedelta:
    return timedelta(days=number)


def test_recipients_have_the_rank_of_a_recommendation(client_on_either: Client) -> None:
    client = client_on_either
    send(client, *((f"u{user}", f"i{user}", days(user + 1)) for user in range(8)))
    answer = get(client, "/v1/items/i9/recipients", instants=2, step_days=4, n=100)
    assert [instant["query_time"] for instant in answer["instants"]] == [
        (END - days(back)).isoformat().replace("+00:00", "Z") for back in (0, 4)
    ]
    for back, instant in zip((0, 4), answer["instants"], strict=True):
        at = END - days(back)
        # At the earlier instant only users with an event until then are known.
        users = [f"u{user}" for user in range(8) if user + 1 >= back]
        ranks = {user: list_best(client, user, at, 100).index("i9") + 1 for user in users}
        assert {one["user_id"]: one["rank"] for one in instant["recipients"]} == ranks
        assert instant["sampled_users"] == instant["listed"] == len(users)
        in_top_10 = sum(rank <= 10 for rank in ranks.values())
        assert instant["share_of_top_10"] == pytest.approx(in_top_10 / len(users))
    found = [one["rank"] for one in answer["instants"][0]["recipients"]]
    assert found == sorted(found)


def test_who_has_the_item_already_is_no_recipient(client: Client) -> None:
    send(client, ("u1", "i1", days(1)), ("u2", "i2", days(1)))
    (instant,) = get(client, "/v1/items/i1/recipients", instants=1)["instants"]
    assert [one["user_id"] for one in instant["recipients"]] == ["u2"]
    assert instant["sampled_users"] == 2


def test_an_item_that_is_not_available_then_has_no_recipients(client: Client) -> None:
    send(client, ("u1", "i1", days(9)))
    until = (END - days(2)).isoformat()
    client.put("/v1/items", {"items": [{"item_id": "i5", "available_until": until}]})
    later, earlier = get(client, "/v1/items/i5/recipients", instants=2, step_days=5)["instants"]
    assert (later["listed"], later["share_of_top_10"]) == (0, 0)
    assert earlier["listed"] == 1


def test_a_sample_without_users_has_no_share(shared_client: Client) -> None:
    (instant,) = get(shared_client, "/v1/items/i1/recipients", instants=1)["instants"]
    assert (instant["sampled_users"], instant["share_of_top_10"]) == (0, None)


def test_recipients_have_each_instant_once(shared_client: Client) -> None:
    answer = get(
        shared_client, "/v1/items/i1/recipients", instants=3, at="0001-01-01T12:00:00Z", step_days=1
    )
    assert [one["query_time"] for one in answer["instants"]] == [
        "0001-01-01T12:00:00Z",
        "0001-01-01T00:00:00Z",
    ]


def test_an_item_unknown_to_the_model_has_no_recipients(shared_client: Client) -> None:
    problem(shared_client.get("/v1/items/none/recipients"), 404, "item_not_found")


def test_changes_compare_the_ten_best_items(client_on_either: Client) -> None:
    client = client_on_either
    sent = [
        (f"u{user}", f"i{user + turn}", days(1 + 3 * turn)) for user in range(5) for turn in (0, 1)
    ]
    # This user's history becomes another one between the two instants.
    send(client, *sent, ("u0", "i15", -days(2)), ("u0", "i16", -days(3)))
    answer = get(client, "/v1/overview/changes", until=(END + days(60)).isoformat())
    assert answer["compared_users"] == 5
    assert answer["at"] == END.isoformat().replace("+00:00", "Z")
    changes = [user["change"] for user in answer["users"]]
    assert changes == sorted(changes, reverse=True)
    for user in answer["users"]:
        before, after = (list_best(client, user["user_id"], at) for at in (END, END + days(60)))
        assert user["entered"] == len(set(after) - set(before))
        assert user["left"] == len(set(before) - set(after))
        assert (user["change"] == 0) == (before == after)
        assert user["events"] == 2
        assert user["events_between"] == (2 if user["user_id"] == "u0" else 0)


def test_a_sample_is_of_the_latest_events(client_on_either: Client) -> None:
    send(
        client_on_either,
        *((f"u{user}", "i1", days(user)) for user in range(6)),
        # After the instant, and long ago: neither makes this user one of the latest.
        ("late", "i1", -days(1)),
        ("late", "i1", days(50)),
    )
    answer = get(client_on_either, "/v1/overview/changes", users=3)
    assert {user["user_id"] for user in answer["users"]} == {"u0", "u1", "u2"}


def test_an_erased_user_is_in_no_sample(client: Client) -> None:
    send(client, ("kept", "i1", days(1)), ("erased", "i1", days(1)))
    client.request("DELETE", "/v1/users/erased")
    answers = [
        get(client, "/v1/overview/changes")["users"],
        get(client, "/v1/overview/examples", max_seconds=1000)["users"],
        get(client, "/v1/items/i3/recipients", instants=1)["instants"][0]["recipients"],
    ]
    assert [[user["user_id"] for user in users] for users in answers] == [["kept"]] * 3


def test_an_example_has_a_last_event_of_the_age(client_on_either: Client) -> None:
    send(
        client_on_either,
        ("u1", "i1", days(20)),
        ("u1", "i2", days(10)),
        ("u2", "i3", days(3)),
        ("u3", "i4", days(1)),
    )
    day = 86400
    answer = get(
        client_on_either, "/v1/overview/examples", min_seconds=2 * day, max_seconds=8 * day
    )
    assert answer["searched_users"] == 3
    assert [
        (user["user_id"], user["query_time"], user["last_event_at"], user["item_id"])
        for user in answer["users"]
    ] == [
        # Four days after the last event; the last one of u3 is too recent.
        ("u1", *(f"{END - days(back):%Y-%m-%dT%H:%M:%SZ}" for back in (6, 10)), "i2")
    ]


def test_a_range_of_ages_begins_before_it_ends(client: Client) -> None:
    answer = client.get("/v1/overview/examples", params={"min_seconds": 9, "max_seconds": 8})
    assert answer.status_code == 422
    assert answer.json()["detail"] == ("min_seconds is at most max_seconds, but 9 > 8; swap them")


def test_examples_are_of_an_action_and_a_category(client: Client) -> None:
    send(client, ("u1", "i0", days(5)), ("u2", "i1", days(5)), ("u3", "i3", days(5)))

    def list_users(**query: str) -> set[str]:
        answer = get(client, "/v1/overview/examples", max_seconds=86400, **query)
        return {user["user_id"] for user in answer["users"]}

    assert list_users() == {"u1", "u2", "u3"}
    assert list_users(action="view") == {"u2"}
    assert list_users(category="odd") == {"u2", "u3"}
    assert list_users(category="odd", action="buy") == {"u3"}
    assert list_users(category="none") == set()


@pytest.mark.parametrize(
    ("path", "where"),
    [
        ("items/i1/recipients?users=201", "users"),
        ("items/i1/recipients?instants=7", "instants"),
        ("overview/changes?n=101", "n"),
        ("overview/changes?at=x", "at"),
        ("overview/examples?max_seconds=0", "max_seconds"),
    ],
)
def test_a_query_that_breaks_a_rule_is_refused(
    shared_client: Client, path: str, where: str
) -> None:
    error = problem(shared_client.get(f"/v1/{path}"), 422, "validation_failed")
    assert error["errors"][0]["where"] == f"query.{where}"
