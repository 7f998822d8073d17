"""GET /v1/items/{item_id}/popularity."""

from typing import Any
from urllib.parse import quote

import pytest
from sqlalchemy import text
from sqlalchemy.orm import Session

from app.db.engine import WRITES, open_engine
from app.db.events import EventRepository, EventRow
from app.http.types import parse_instant
from app.items.popularity import MAX_ACTIONS, MAX_BUCKETS
from app.settings import Settings
from tests.app.client import Client, problem, running

DAY = 86_400
FIRST = 1_230_768_000
"""2009-01-01, a Thursday."""
MONDAY = "2026-03-02T00:00:00Z"


def happen(client: Client, *events: tuple[str, str, Any]) -> None:
    """Store events (item, action, instant), each of another user."""
    sent = [
        {"user_id": f"u{n}", "item_id": item_id, "action": action, "timestamp": instant}
        for n, (item_id, action, instant) in enumerate(events)
    ]
    for start in range(0, len(sent), 1000):
        answer = client.post("/v1/events", {"events": sent[start : start + 1000]}).json()
        assert answer["accepted"] == len(sent[start : start + 1000])


def store_implausible(client: Client, *events: tuple[str, Any]) -> None:
    """Store events (item, instant) as an earlier release took them."""
    rows = [
        EventRow(f"e{n}", "u", item_id, "buy", parse_instant(at), None, None, None, 0)
        for n, (item_id, at) in enumerate(events)
    ]
    engine = open_engine(client.app.state.context.settings.database_url)
    with Session(engine.execution_options(**WRITES)) as session, session.begin():
        EventRepository(session).add(rows)
    engine.dispose()


def popularity(client: Client, item_id: str, **query: Any) -> dict[str, Any]:
    response = client.get(f"/v1/items/{quote(item_id, safe='')}/popularity", params=query)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def starts(answer: dict[str, Any]) -> list[str]:
    return [count["start"][:10] for count in answer["counts"]]


def events(answer: dict[str, Any]) -> list[int]:
    return [count["events"] for count in answer["counts"]]


def test_days_between_events_count_zero(
    client_on_either: Client,
) -> None:
    happen(
        client_on_either,
        ("mug", "buy", "2026-03-02T00:00:00Z"),
        ("mug", "view", "2026-03-02T23:59:59.999999Z"),
        ("mug", "buy", "2026-03-05T12:00:00+02:00"),
        ("other", "buy", "2026-03-09T12:00:00Z"),
    )
    answer = popularity(client_on_either, "mug", step="day")
    assert starts(answer) == ["2026-03-02", "2026-03-03", "2026-03-04", "2026-03-05"]
    assert events(answer) == [2, 0, 0, 1]
    assert answer["actions"] == {"buy": [1, 0, 0, 1], "view": [1, 0, 0, 0]}
    assert (answer["item_id"], answer["step"], answer["events"]) == ("mug", "day", 3)
    assert answer["first_at"] == "2026-03-02T00:00:00Z"
    assert answer["last_at"] == "2026-03-05T10:00:00Z"


def test_weeks_begin_on_monday_and_months_on_their_first(client_on_either: Client) -> None:
    happen(
        client_on_either,
        ("mug", "buy", "2026-03-01T23:00:00Z"),
        ("mug", "buy", MONDAY),
        ("mug", "buy", "2026-05-31T23:59:59Z"),
    )
    weeks = popularity(client_on_either, "mug")
    assert (weeks["step"], len(weeks["counts"])) == ("week", 14)
    assert starts(weeks)[:2] == ["2026-02-23", "2026-03-02"]
    months = popularity(client_on_either, "mug", step="month")
    assert starts(months) == ["2026-03-01", "2026-04-01", "2026-05-01"]
    assert events(months) == [2, 0, 1]


def test_events_before_1970_are_counted_on_their_day(client_on_either: Client) -> None:
    store_implausible(client_on_either, ("mug", -1), ("mug", 0), ("mug", -DAY))
    answer = popularity(client_on_either, "mug", step="day", since=-DAY)
    assert starts(answer) == ["1969-12-31", "1970-01-01"]
    assert events(answer) == [2, 1]


def test_the_bounds_of_a_count_are_inclusive(
    client_on_either: Client,
) -> None:
    happen(client_on_either, *(("mug", "buy", FIRST + n * DAY) for n in range(5)))
    bounds = {"since": FIRST + DAY, "until": FIRST + 3 * DAY}
    answer = popularity(client_on_either, "mug", step="day", **bounds)
    assert events(answer) == [1, 1, 1]
    before = popularity(client_on_either, "mug", step="day", until=FIRST - 1)
    assert (before["counts"], before["first_at"], before["actions"]) == ([], None, {})


def test_a_stored_item_without_events_has_no_buckets(client: Client) -> None:
    client.put("/v1/items", {"items": [{"item_id": "a/b"}]})
    answer = popularity(client, "a/b")
    assert (answer["item_id"], answer["counts"], answer["events"]) == ("a/b", [], 0)
    assert (answer["first_at"], answer["last_at"]) == (None, None)


def test_events_of_a_deleted_item_are_counted(client: Client) -> None:
    client.put("/v1/items", {"items": [{"item_id": "mug"}]})
    happen(client, ("mug", "buy", MONDAY))
    client.request("DELETE", "/v1/items/mug")
    assert popularity(client, "mug")["events"] == 1


def test_an_unknown_item_is_not_found(client_on_either: Client) -> None:
    response = client_on_either.get("/v1/items/no%2Fsuch/popularity")
    assert "'no/such'" in problem(response, 404, "item_not_found")["detail"]


def test_an_item_that_was_deleted_without_events_is_not_found(client: Client) -> None:
    client.put("/v1/items", {"items": [{"item_id": "mug"}]})
    client.request("DELETE", "/v1/items/mug")
    problem(client.get("/v1/items/mug/popularity"), 404, "item_not_found")


def test_an_item_named_popularity_is_counted(client: Client) -> None:
    happen(client, ("popularity", "buy", MONDAY), ("x/similar", "buy", MONDAY))
    assert popularity(client, "popularity")["events"] == 1
    assert popularity(client, "x/similar")["events"] == 1


def test_one_bucket_more_than_allowed_is_refused(
    client_on_either: Client,
) -> None:
    happen(client_on_either, ("mug", "buy", FIRST), ("mug", "buy", FIRST + (MAX_BUCKETS - 1) * DAY))
    assert len(popularity(client_on_either, "mug", step="day")["counts"]) == MAX_BUCKETS
    happen(client_on_either, ("mug", "buy", FIRST + MAX_BUCKETS * DAY))
    response = client_on_either.get("/v1/items/mug/popularity?step=day")
    detail = problem(response, 422, "validation_failed")["detail"]
    assert "at most 1,100 buckets" in detail
    assert "there are 1,101" in detail
    assert "longer step" in detail
    assert len(popularity(client_on_either, "mug", step="week")["counts"]) == 158
    since = popularity(client_on_either, "mug", step="day", since=FIRST + DAY)
    assert events(since) == [1, 1]


def test_the_first_and_last_instants_are_valid_bounds(client: Client) -> None:
    first = "0001-01-01T00:00:00Z"
    store_implausible(client, ("old", first), ("mug", first))
    for step in ("day", "week", "month"):
        assert starts(popularity(client, "old", step=step, since=first)) == ["0001-01-01"]
    happen(client, ("mug", "buy", MONDAY))
    path = f"/v1/items/mug/popularity?step=month&since={first}"
    problem(client.get(path), 422, "validation_failed")


@pytest.mark.parametrize("implausible", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"])
@pytest.mark.parametrize("step", ["day", "week", "month"])
def test_an_implausible_time_is_not_counted_but_said(
    client: Client, implausible: str, step: str
) -> None:
    happen(client, ("mug", "buy", MONDAY))
    plain = popularity(client, "mug", step=step)
    assert plain["warnings"] == []
    store_implausible(client, ("mug", implausible), ("only", implausible))
    assert popularity(client, "mug", step=step) == plain | {"warnings": ["implausible_times"]}
    only = popularity(client, "only", step=step)
    assert (only["events"], only["warnings"]) == (0, ["implausible_times"])


def test_rare_actions_count_in_the_whole_only(client_on_either: Client) -> None:
    common = [("mug", f"a{n:02}", MONDAY) for n in range(MAX_ACTIONS)]
    happen(client_on_either, *common, *common, ("mug", "rare", MONDAY))
    answer = popularity(client_on_either, "mug")
    assert [*answer["actions"]] == [f"a{n:02}" for n in range(MAX_ACTIONS)]
    assert answer["events"] == events(answer)[0] == 2 * MAX_ACTIONS + 1
    assert sum(counts[0] for counts in answer["actions"].values()) == 2 * MAX_ACTIONS


@pytest.mark.parametrize(
    "query", ["step=year", "step=", "since=yesterday", "until=2026-03-01T00:00:00"]
)
def test_a_query_that_breaks_a_rule_is_refused(shared_client: Client, query: str) -> None:
    error = problem(
        shared_client.get(f"/v1/items/mug/popularity?{query}"), 422, "validation_failed"
    )
    assert error["errors"][0]["where"] == "query." + query.partition("=")[0]


def test_the_database_counts_by_the_index_alone(settings: Settings) -> None:
    with running(settings) as client:
        plan = client.portal.call(
            client.app.state.context.database.read,
            lambda session: (
                session.execute(
                    text(
                        "EXPLAIN QUERY PLAN SELECT at, action FROM events "
                        "WHERE item_id = 'i1' AND at BETWEEN 1 AND 2"
                    )
                )
                .mappings()
                .all()
            ),
        )
    assert "COVERING INDEX ix_events_item_id_at_action" in plan[0]["detail"]


def test_of_very_many_events_the_newest_are_counted(
    client_on_either: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.items.repository.MOST_COUNTED", 3)
    happen(
        client_on_either,
        ("mug", "view", "2026-03-01T00:00:00Z"),
        ("mug", "view", "2026-03-02T00:00:00Z"),
        ("mug", "view", "2026-03-02T00:00:00Z"),
        ("mug", "buy", "2026-03-04T00:00:00Z"),
        ("mug", "buy", "2026-03-04T00:00:00Z"),
    )
    answer = popularity(client_on_either, "mug", step="day")
    assert answer["is_complete"] is False
    assert (events(answer), answer["first_at"]) == ([1, 0, 2], "2026-03-02T00:00:00Z")
    assert answer["actions"] == {"buy": [0, 0, 2], "view": [1, 0, 0]}
    older = popularity(client_on_either, "mug", step="day", until="2026-03-02T00:00:00Z")
    assert (older["is_complete"], events(older)) == (True, [1, 2])
