"""POST /v1/events, on both databases."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from app.db.events import compute_natural_key, compute_sender_key
from app.events.schemas import IncomingEvent
from app.events.service import to_row
from app.http.types import format_instant, parse_instant
from app.settings import Settings
from model.clock import now
from tests.app.client import Client, running
from tests.processes import PATIENCE_SECONDS, eventually

EVENT = {"user_id": "u", "item_id": "i1", "action": "view", "timestamp": "2026-01-01T00:00:00Z"}


def ingest(client: Client, *events: object) -> dict[str, Any]:
    response = client.post("/v1/events", {"events": list(events)})
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def history(client: Client) -> list[dict[str, Any]]:
    """List the stored events of the user, newest first."""
    events: list[dict[str, Any]] = client.get("/v1/users/u").json()["events"]
    return events


def test_an_event_is_stored_as_sent(client_on_either: Client) -> None:
    event = {
        **EVENT,
        "event_id": "e1",
        "value": 4.5,
        "recommendation_id": "r1",
        "properties": {"deep": [{"ü": None}], "big": 2**60, "x": 1e300},
    }
    assert ingest(client_on_either, event) == {"accepted": 1, "duplicates": 0, "rejected": []}
    (kept,) = history(client_on_either)
    assert {"user_id": "u", **kept} == event


def test_an_event_sent_again_is_a_duplicate_and_changes_nothing(client_on_either: Client) -> None:
    first = {**EVENT, "value": 1.0}
    assert ingest(client_on_either, first)["accepted"] == 1
    again = ingest(client_on_either, {**EVENT, "value": 2.0}, {**EVENT, "timestamp": 1767225600})
    assert again == {"accepted": 0, "duplicates": 2, "rejected": []}
    assert [event["value"] for event in history(client_on_either)] == [1.0]


def test_of_equal_events_in_one_request_the_first_wins(client_on_either: Client) -> None:
    one, two = ({**EVENT, "event_id": "e", "item_id": item_id} for item_id in ("i1", "i2"))
    assert ingest(client_on_either, one, two) == {"accepted": 1, "duplicates": 1, "rejected": []}
    assert [event["item_id"] for event in history(client_on_either)] == ["i1"]


def test_an_event_id_takes_precedence_over_the_content(client_on_either: Client) -> None:
    events = [{**EVENT, "event_id": event_id} for event_id in ("a", "b")]
    assert ingest(client_on_either, *events)["accepted"] == 2


def test_repeated_interactions_with_an_item_are_kept(client_on_either: Client) -> None:
    events = [{**EVENT, "timestamp": 1767225600 + second} for second in range(3)]
    assert ingest(client_on_either, *events, {**EVENT, "action": "buy"})["accepted"] == 4
    assert len(history(client_on_either)) == 4


def test_late_events_are_ordered_by_time(client_on_either: Client) -> None:
    ingest(client_on_either, {**EVENT, "item_id": "later", "timestamp": 1767227600})
    ingest(client_on_either, {**EVENT, "item_id": "earlier", "timestamp": 1767226600})
    assert [event["item_id"] for event in history(client_on_either)] == ["later", "earlier"]


def test_events_of_one_instant_keep_the_order_of_their_arrival(client_on_either: Client) -> None:
    items = [f"i{number}" for number in (7, 3, 9, 1)]
    ingest(client_on_either, *({**EVENT, "item_id": item_id} for item_id in items))
    assert [event["item_id"] for event in history(client_on_either)] == items[::-1]


@pytest.mark.parametrize(
    ("event", "code", "words"),
    [
        ({**EVENT, "timestamp": "2026-01-01T00:00:00"}, "instant_naive", "#/timestamp"),
        ({**EVENT, "timestamp": None}, "instant_type", "#/timestamp"),
        ({**EVENT, "user_id": "a\0b"}, "string_pattern_mismatch", "#/user_id"),
        ({**EVENT, "item_id": ""}, "string_too_short", "#/item_id"),
        ({**EVENT, "item_id": "x" * 300}, "string_too_long", "300 characters"),
        ({**EVENT, "event_id": 7}, "string_type", "#/event_id"),
        ({**EVENT, "value": "4"}, "float_type", "#/value"),
        ({**EVENT, "surprise": 1}, "extra_forbidden", "#/surprise"),
        ({"user_id": "u"}, "missing", "#/item_id"),
        ("not an event", "model_attributes_type", "'not an event'"),
        (None, "model_attributes_type", "null"),
        ({**EVENT, "properties": {"a": "\0"}}, "properties_unstorable", "#/properties"),
        ({**EVENT, "properties": {"a": "x" * 20000}}, "properties_too_large", "#/properties"),
        ({**EVENT, "properties": []}, "dict_type", "#/properties"),
    ],
)
def test_a_bad_event_is_rejected_alone(
    client_on_either: Client, event: object, code: str, words: str
) -> None:
    answer = ingest(client_on_either, EVENT, event, {**EVENT, "item_id": "i2"})
    assert answer["accepted"] == 2
    (rejected,) = answer["rejected"]
    assert (rejected["index"], rejected["code"]) == (1, code)
    assert words in rejected["message"]
    assert len(rejected["message"]) < 250


def test_deeply_nested_properties_are_rejected(client: Client) -> None:
    nested: dict[str, Any] = {}
    for _ in range(300):
        nested = {"a": nested}
    answer = ingest(client, {**EVENT, "properties": nested})
    assert answer["rejected"][0]["code"] == "properties_unstorable"


def test_an_event_may_be_slightly_ahead_of_the_clock(client: Client) -> None:
    ahead = [now() + seconds * 1_000_000 for seconds in (290, 310)]
    answer = ingest(client, *({**EVENT, "timestamp": format_instant(at)} for at in ahead))
    assert answer["accepted"] == 1
    assert [(event["index"], event["code"]) for event in answer["rejected"]] == [
        (1, "in_the_future")
    ]


def test_ids_that_the_service_gives_are_not_taken(client: Client) -> None:
    """A sender who takes the id of another one's next event would make that a duplicate."""
    at = parse_instant(EVENT["timestamp"])
    own = compute_natural_key(EVENT["user_id"], EVENT["item_id"], EVENT["action"], at)
    of_another = compute_natural_key("u2", EVENT["item_id"], EVENT["action"], at)
    of_a_sender = compute_sender_key("acme/", "order-77")
    ids = (of_another, of_a_sender, own, own[:-1])
    answer = ingest(client, *({**EVENT, "event_id": event_id} for event_id in ids))
    assert [(one["index"], one["code"]) for one in answer["rejected"]] == [
        (0, "event_id_reserved"),
        (1, "event_id_reserved"),
    ]
    assert answer["accepted"] == 2
    assert ingest(client, EVENT)["duplicates"] == 1


def test_an_event_from_before_1990_is_rejected(client_on_either: Client) -> None:
    instants = ("0001-01-01T00:00:00Z", 0, "1989-12-31T23:59:59.999999Z", "1990-01-01T00:00:00Z")
    answer = ingest(client_on_either, *({**EVENT, "timestamp": at} for at in instants))
    assert answer["accepted"] == 1
    assert [event["code"] for event in answer["rejected"]] == ["too_old"] * 3
    assert "no event is from before 1990" in answer["rejected"][1]["message"]


def test_a_thousand_events_are_stored_and_one_more_is_refused(
    client_on_either: Client,
) -> None:
    events = [{**EVENT, "timestamp": 1767225600 + number} for number in range(1001)]
    assert client_on_either.post("/v1/events", {"events": events}).status_code == 422
    assert ingest(client_on_either, *events[:1000])["accepted"] == 1000
    assert ingest(client_on_either, *events[1:])["accepted"] == 1


def test_an_empty_batch_is_accepted(client: Client) -> None:
    assert ingest(client) == {"accepted": 0, "duplicates": 0, "rejected": []}


def test_concurrent_overlapping_batches_store_each_event_once(client_on_either: Client) -> None:
    events = [
        {**EVENT, "event_id": f"e{number}", "timestamp": 1767225600 + number}
        for number in range(400)
    ]
    # Opposite orders of the same keys make two transactions deadlock.
    batches = [events, events[::-1], events[200:] + events[:200], events[::2] + events[1::2]]
    with ThreadPoolExecutor(len(batches)) as threads:
        answers = list(threads.map(lambda batch: ingest(client_on_either, *batch), batches))
    assert sum(answer["accepted"] for answer in answers) == 400
    assert sum(answer["duplicates"] for answer in answers) == 1200
    assert len(client_on_either.get("/v1/users/u?limit=1000").json()["events"]) == 400


@pytest.mark.slow
def test_a_batch_aborted_by_a_deadlock_is_retried(settings: Settings, postgresql_url: str) -> None:
    """Another transaction inserts the same two events in the opposite order."""
    insert = (
        "INSERT INTO events (event_id, user_id, item_id, action, at, received_at) "
        "VALUES (%s, 'u', 'i1', 'view', 0, 0)"
    )
    waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    first, second = ({**EVENT, "event_id": event_id} for event_id in ("a", "b"))
    with psycopg.connect(postgresql_url, autocommit=True) as owner:
        # Long enough for this test to act on a busy machine.
        owner.execute(f"ALTER DATABASE {owner.info.dbname} SET deadlock_timeout = '8s'")
    # And the service waits longer than PostgreSQL needs to notice the deadlock.
    changes = {"database_url": postgresql_url, "database_timeout_seconds": PATIENCE_SECONDS}
    with (
        running(settings.model_copy(update=changes)) as client,
        psycopg.connect(postgresql_url) as other,
        psycopg.connect(postgresql_url, autocommit=True) as observer,
        ThreadPoolExecutor(1) as thread,
    ):
        # The first transaction to wait that long is aborted: it must be the service's.
        other.execute("SET deadlock_timeout = '1min'")
        other.execute(insert, ["b"])
        ours = thread.submit(ingest, client, first, second)
        eventually(lambda: observer.execute(waits).fetchone() == (1,))
        other.execute(insert, ["a"])
        other.commit()
        assert ours.result(PATIENCE_SECONDS) == {"accepted": 0, "duplicates": 2, "rejected": []}


def test_events_are_counted_by_outcome(client: Client) -> None:
    ingest(client, EVENT, EVENT, {})
    for result in ("accepted", "duplicate", "rejected"):
        assert client.metric("kairos_events_ingested_total", result=result) == 1
    assert client.metric("kairos_event_lag_seconds_count") == 1


names = st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1, max_size=40)


@given(user_id=names, item_id=names, action=names)
def test_different_events_have_different_keys(user_id: str, item_id: str, action: str) -> None:
    def key(**fields: Any) -> str:
        event = {"user_id": user_id, "item_id": item_id, "action": action, "timestamp": 0} | fields
        return to_row(IncomingEvent.model_validate(event), received_at=0).event_id

    assert key() == key(value=1.0)
    others = [
        {"user_id": user_id + "x"},
        {"item_id": item_id + "x"},
        {"action": action + "x"},
        {"timestamp": 0.000001},
        {"user_id": user_id + item_id[0], "item_id": item_id[1:] or "x"},
    ]
    assert key() not in {key(**other) for other in others}


@given(user_id=names, item_id=names, seconds=st.integers(631_152_000, 1_700_000_000))
@hypothesis_settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_id_survives_the_database(
    client_on_either: Client, user_id: str, item_id: str, seconds: int
) -> None:
    event = {**EVENT, "user_id": user_id, "item_id": item_id, "timestamp": seconds}
    ingest(client_on_either, event)
    answer = client_on_either.post("/v1/recommendations", {"user_id": user_id}).json()
    assert item_id in answer["unknown_item_ids"] or answer["history_used"] > 0


@pytest.mark.parametrize(("depth", "accepted"), [(16, 1), (17, 0), (100, 0)])
def test_properties_nest_to_a_bound(client: Client, depth: int, accepted: int) -> None:
    properties: Any = "bottom"
    for _ in range(depth):
        properties = {"a": properties}
    assert ingest(client, {**EVENT, "properties": properties})["accepted"] == accepted
