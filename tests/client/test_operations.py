"""The operations on recommendations, items, users and health, against the real application."""

from datetime import UTC, datetime, timedelta, timezone
from uuid import uuid4

import pytest

from kairos_client import (
    ConflictError,
    Event,
    InvalidError,
    ItemDescription,
    NotFoundError,
    PastEvent,
)
from tests.client.either_client import EitherClient

NOON = datetime(2026, 2, 1, 12, tzinfo=UTC)
HISTORY = [PastEvent(f"i{number}", NOON - timedelta(days=number)) for number in range(1, 4)]


def events(user_id: str, count: int) -> list[Event]:
    return [
        Event(
            user_id=user_id,
            item_id=f"i{number % 20}",
            action="view",
            timestamp=NOON - timedelta(hours=number),
        )
        for number in range(count)
    ]


def test_recommend_returns_items_and_attention(kairos: EitherClient) -> None:
    answer = kairos.recommend(history=HISTORY, query_time=NOON, n=3, explain="heads")
    assert [item.rank for item in answer.items] == [1, 2, 3]
    assert answer.query_time == NOON
    assert [event.item_id for event in answer.attention.events] == ["i3", "i2", "i1"]
    assert [event.timestamp for event in answer.attention.events] == [
        event.timestamp for event in reversed(HISTORY)
    ]
    assert sum(event.weight for event in answer.attention.events) == pytest.approx(1, abs=1e-5)
    assert len(answer.attention.heads) == 2


def test_recommend_applies_filters(kairos: EitherClient) -> None:
    request = {"history": HISTORY, "query_time": NOON, "n": 20}
    assert {
        category
        for item in kairos.recommend(**request, any_categories=["odd"]).items
        for category in item.categories
    } == {"odd"}
    included = kairos.recommend(**request, include_item_ids={"i7", "i8"}, strict=True).items
    assert {item.item_id for item in included} == {"i7", "i8"}
    remaining = kairos.recommend(**request, exclude_item_ids=["i7"]).items
    assert "i7" not in {item.item_id for item in remaining}


def test_rank_ranks_the_given_items(kairos: EitherClient) -> None:
    answer = kairos.rank(["i5", "unknown", "i6"], history=HISTORY, query_time=NOON)
    assert {item.item_id for item in answer.items} == {"i5", "i6", "unknown"}
    assert (answer.items[-1].reason, answer.items[-1].score) == ("unknown", None)


def test_sweep_returns_weights_at_every_query_time(kairos: EitherClient) -> None:
    instants = [NOON - timedelta(days=1, hours=12), NOON]
    answer = kairos.sweep(instants, history=HISTORY, n=2)
    assert [instant.query_time for instant in answer.instants] == instants
    early, late = (instant.weights for instant in answer.instants)
    assert early[-1] is None
    assert None not in late


def test_ingested_events_are_the_history_of_their_user(kairos: EitherClient) -> None:
    user_id = f"u/{uuid4()} ü"
    sent = events(user_id, 3)
    assert kairos.ingest(sent).accepted == 3
    assert kairos.ingest(sent).duplicates == 3
    history = kairos.read_user(user_id, limit=2)
    assert [event.event_id for event in history.events] == [event.event_id for event in sent[:2]]
    assert kairos.list_users(user_id).users[0].events == 3
    answer = kairos.recommend_to_user(user_id, n=2, at=NOON + timedelta(hours=1))
    assert (answer.history_used, len(answer.items)) == (3, 2)
    erased = kairos.erase_user(user_id)
    assert erased.deleted_events == 3
    assert kairos.read_user(user_id).events == ()


def test_items_are_stored_listed_read_and_deleted(kairos: EitherClient) -> None:
    mug = ItemDescription(item_id="mug/blue", title="Blue mug", available_from=NOON)
    assert kairos.put_items([mug]).stored == 1
    assert [item.title for item in kairos.list_items("blue").items] == ["Blue mug"]
    assert kairos.read_item("mug/blue").available_from == NOON
    kairos.delete_item("mug/blue")
    with pytest.raises(NotFoundError) as error:
        kairos.read_item("mug/blue")
    assert (error.value.code, error.value.status) == ("item_not_found", 404)
    assert error.value.request_id
    assert error.value.request_id in str(error.value)


def test_deleting_an_unknown_item_is_not_found(kairos: EitherClient) -> None:
    with pytest.raises(NotFoundError):
        kairos.delete_item("unknown")


def test_two_equal_events_with_own_ids_are_both_stored(kairos: EitherClient) -> None:
    user_id = f"user-{uuid4()}"
    pair = [*events(user_id, 1), *events(user_id, 1)]
    assert kairos.ingest(pair).accepted == 2
    assert kairos.ingest(pair).duplicates == 2


def test_every_item_reads_all_pages(kairos: EitherClient) -> None:
    item_ids = [f"page/{number:04}" for number in range(1001)]
    for chunk in (item_ids[:600], item_ids[600:]):
        kairos.put_items([ItemDescription(item_id=name, title="Paged") for name in chunk])
    assert [item.item_id for item in kairos.iter_items("paged")] == item_ids


def test_list_similar_ranks_items(kairos: EitherClient) -> None:
    answer = kairos.list_similar("i3", n=4)
    assert [item.rank for item in answer.items] == [1, 2, 3, 4]


def test_read_popularity_counts_events_over_time(kairos: EitherClient) -> None:
    item_id = f"counted/{uuid4()}"
    sent = [
        Event(user_id="counting", item_id=item_id, action=action, timestamp=NOON + after)
        for action, after in (("view", timedelta()), ("buy", timedelta(days=2)))
    ]
    kairos.ingest(sent)
    answer = kairos.read_popularity(item_id, step="day", since=NOON, until=NOON + timedelta(days=9))
    assert [count.events for count in answer.counts] == [1, 0, 1]
    assert answer.counts[0].start == NOON.replace(hour=0)
    assert answer.actions == {"buy": (0, 0, 1), "view": (1, 0, 0)}


def test_read_map_returns_the_most_popular_items(kairos: EitherClient) -> None:
    version = kairos.list_models().models[0].version
    answer = kairos.read_map(version, items=3)
    assert [item.item_id for item in answer.items] == ["i0", "i1", "i2"]


def test_samples_of_users_name_their_users(kairos: EitherClient) -> None:
    user_id = f"sampled-{uuid4()}"
    kairos.ingest(events(user_id, 3))
    at = NOON + timedelta(days=1)
    changed = kairos.list_changed_users(at=at, until=at + timedelta(days=9), users=200, n=100)
    assert user_id in {user.user_id for user in changed.users}
    examples = kairos.list_example_users(max_seconds=7200, at=at, n=100)
    assert all(user.query_time > user.last_event_at for user in examples.users)
    (instant,) = kairos.list_recipients("i19", at=at, instants=1, users=200, n=100).instants
    assert instant.query_time == at
    assert {user.rank for user in instant.recipients} <= set(range(1, 101))


def test_read_caller_returns_name_and_role(kairos: EitherClient) -> None:
    caller = kairos.read_caller()
    assert (caller.name, caller.role, caller.has_key) == ("loopback", "admin", False)


def test_read_metrics_returns_values_of_one_process(kairos: EitherClient) -> None:
    one, other = (kairos.read_metrics() for _ in range(2))
    assert one.instance == other.instance
    assert "kairos_model_info" in {metric.name for metric in one.metrics}


def test_read_next_time_without_a_time_model_is_a_conflict(kairos: EitherClient) -> None:
    with pytest.raises(ConflictError) as error:
        kairos.read_next_time("u1", at=NOON.astimezone(timezone(timedelta(hours=5, minutes=30))))
    assert error.value.code == "model_says_no_time"


def test_probes_and_metrics_respond(kairos: EitherClient) -> None:
    assert kairos.live().status == "live"
    assert (kairos.ready().status, kairos.ready().model) == ("ready", "ok")
    assert "kairos_model_info" in kairos.metrics()


def test_an_invalid_request_names_the_broken_field(kairos: EitherClient) -> None:
    with pytest.raises(InvalidError) as error:
        kairos.recommend("u1", n=0)
    assert error.value.code == "validation_failed"
    assert [rule.where for rule in error.value.broken_rules] == ["#/n"]
