"""What happens when the network, or the service, fails in passing: over a real socket."""

import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from kairos_client import (
    Event,
    InvalidError,
    ItemDescription,
    KairosError,
    LostAnswerError,
    RateLimitedError,
    Retries,
    UnavailableError,
    UnexpectedAnswerError,
)
from tests.client.asking import asking
from tests.client.flaky import Flaky, Mishap

NOON = datetime(2026, 2, 1, 12, tzinfo=UTC)
AMID = [Mishap.LOST_REQUEST, Mishap.LOST_ANSWER, Mishap.HALF_AN_ANSWER, Mishap.GATEWAY]


def events(flaky: Flaky, count: int) -> list[Event]:
    return [
        Event(user_id=flaky.user_id, item_id=f"i{number}", action="view", timestamp=NOON)
        for number in range(count)
    ]


def with_a_twin(flaky: Flaky, count: int) -> list[Event]:
    """Events of which two are alike, and yet two: only their ids tell them apart."""
    first, *others = events(flaky, count - 1)
    return [first, replace(first, event_id=f"twin of {first.event_id}"), *others]


def rows(flaky: Flaky) -> int:
    return len(flaky.application.get(f"/v1/users/{flaky.user_id}?limit=1000").json()["events"])


@pytest.mark.parametrize("mishap", [*AMID, Mishap.UNAVAILABLE, Mishap.LIMITED])
def test_events_are_kept_exactly_once_whatever_happens_on_the_way(
    either: str, flaky: Flaky, mishap: Mishap
) -> None:
    flaky.mishaps.extend([mishap, mishap])
    with asking(either, flaky.url) as kairos:
        answer = kairos.ingest(with_a_twin(flaky, 5))
    assert (answer.accepted + answer.duplicates, answer.rejected) == (5, ())
    assert rows(flaky) == 5
    assert len(flaky.asked) == 3
    assert len({*flaky.bodies}) == 1, "a retry must say the very same"


def test_events_sent_again_after_the_client_gave_up_are_kept_once(
    either: str, flaky: Flaky
) -> None:
    sent = events(flaky, 5)
    flaky.mishaps.append(Mishap.LOST_ANSWER)
    with asking(either, flaky.url, retries=Retries(attempts=1)) as kairos:
        with pytest.raises(LostAnswerError) as raised:
            kairos.ingest(sent)
        assert (raised.value.code, raised.value.status) == ("lost_answer", None)
        assert kairos.ingest(sent).duplicates == 5
    assert rows(flaky) == 5


@pytest.mark.parametrize("mishap", [*AMID, Mishap.UNAVAILABLE])
def test_a_change_that_may_have_been_made_is_not_made_again(
    either: str, flaky: Flaky, mishap: Mishap
) -> None:
    flaky.mishaps.append(mishap)
    with asking(either, flaky.url) as kairos, pytest.raises(UnavailableError):
        kairos.roll_back(reason="it answers nonsense")
    assert flaky.asked == ["POST /v1/models/rollback"]


def test_a_change_that_was_turned_away_is_asked_for_again(either: str, flaky: Flaky) -> None:
    flaky.mishaps.append(Mishap.LIMITED)
    with asking(either, flaky.url) as kairos, pytest.raises(KairosError) as raised:
        kairos.roll_back()
    assert raised.value.code != "rate_limited"
    assert len(flaky.asked) == 2


@pytest.mark.parametrize("mishap", AMID)
def test_a_question_is_asked_again(either: str, flaky: Flaky, mishap: Mishap) -> None:
    flaky.mishaps.append(mishap)
    with asking(either, flaky.url) as kairos:
        assert kairos.recommend(flaky.user_id).fallback == "no_history"
    assert len(flaky.asked) == 2


def test_an_item_that_was_deleted_before_the_answer_got_lost_is_deleted(
    either: str, flaky: Flaky
) -> None:
    with asking(either, flaky.url) as kairos:
        kairos.put_items([ItemDescription(item_id="mug")])
        flaky.mishaps.append(Mishap.LOST_ANSWER)
        kairos.delete_item("mug")
    assert flaky.asked[1:] == ["DELETE /v1/items/mug"] * 2


def test_the_time_that_the_service_asks_for_is_given(either: str, flaky: Flaky) -> None:
    flaky.retry_after = "1"
    flaky.mishaps.extend([Mishap.UNAVAILABLE, Mishap.LIMITED])
    with asking(either, flaky.url) as kairos:
        kairos.list_models()
    assert [later - earlier >= 1 for earlier, later in pairwise(flaky.at)] == [True, True]


@pytest.mark.parametrize("far", ["86400", "Fri, 31 Dec 9999 23:59:59 GMT"])
def test_nobody_waits_longer_than_they_said_they_would(either: str, flaky: Flaky, far: str) -> None:
    flaky.retry_after = far
    flaky.mishaps.append(Mishap.UNAVAILABLE)
    retries = Retries(longest_wait_seconds=0.1)
    with asking(either, flaky.url, retries=retries) as kairos:
        kairos.list_models()
    assert len(flaky.asked) == 2


def test_whoever_would_wait_beyond_the_deadline_gives_up_at_once(either: str, flaky: Flaky) -> None:
    flaky.retry_after = "9"
    flaky.mishaps.append(Mishap.UNAVAILABLE)
    with asking(either, flaky.url, retries=Retries()) as kairos:
        began = time.monotonic()
        with pytest.raises(UnavailableError) as raised:
            kairos.within(8).list_models()
        assert time.monotonic() - began < 8
    assert (raised.value.code, raised.value.retry_after) == ("overloaded", 9.0)


def test_a_reply_that_trickles_in_ends_at_the_deadline(either: str, flaky: Flaky) -> None:
    flaky.mishaps.append(Mishap.TRICKLE)
    with asking(either, flaky.url) as kairos:
        began = time.monotonic()
        with pytest.raises(LostAnswerError):
            kairos.within(0.5).list_models()
        assert time.monotonic() - began < 8, "all of it takes longer"


def test_a_service_that_is_not_there_is_told_apart(either: str) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{probe.getsockname()[1]}"
    retries = Retries(attempts=3, first_wait_seconds=0.01)
    with asking(either, url, retries=retries) as kairos, pytest.raises(UnavailableError) as raised:
        kairos.roll_back()
    assert not isinstance(raised.value, LostAnswerError)
    assert (raised.value.code, raised.value.status) == ("no_connection", None)


def test_a_client_gives_up_with_what_was_told_last(either: str, flaky: Flaky) -> None:
    flaky.mishaps.extend([Mishap.UNAVAILABLE, Mishap.LIMITED])
    retries = Retries(attempts=2, first_wait_seconds=0.01)
    with (
        asking(either, flaky.url, retries=retries) as kairos,
        pytest.raises(RateLimitedError) as raised,
    ):
        kairos.list_models()
    assert (raised.value.retry_after, raised.value.request_id) == (0.0, "r1")


def test_a_broken_rule_is_not_tried_again(either: str, flaky: Flaky) -> None:
    with asking(either, flaky.url) as kairos, pytest.raises(InvalidError):
        kairos.recommend("u1", n=0)
    assert len(flaky.asked) == 1


def test_an_answer_of_another_program_is_no_answer(either: str, flaky: Flaky) -> None:
    flaky.mishaps.append(Mishap.NOT_OURS)
    with asking(either, flaky.url) as kairos, pytest.raises(UnexpectedAnswerError) as raised:
        kairos.list_models()
    assert raised.value.code == "unexpected_answer"
    assert "#/models" in raised.value.detail


def test_the_page_of_a_proxy_is_told_as_one(either: str, flaky: Flaky) -> None:
    flaky.mishaps.append(Mishap.GATEWAY)
    with asking(either, flaky.url) as kairos, pytest.raises(LostAnswerError) as raised:
        kairos.roll_back()
    assert (raised.value.code, raised.value.status) == ("http_504", 504)


def test_probes_answer_at_once(either: str, flaky: Flaky) -> None:
    flaky.mishaps.append(Mishap.LOST_REQUEST)
    with asking(either, flaky.url) as kairos, pytest.raises(LostAnswerError):
        kairos.live()
    assert len(flaky.asked) == 1


def test_many_events_go_in_as_few_requests_as_the_service_takes(either: str, flaky: Flaky) -> None:
    wide = "ü" * 2000
    sent = [
        Event(
            user_id=flaky.user_id,
            item_id="i1",
            action="view",
            timestamp=NOON + timedelta(seconds=number),
            properties={"wide": wide},
        )
        for number in range(600)
    ]
    sent += events(flaky, 1200)
    with asking(either, flaky.url) as kairos:
        answer = kairos.ingest(iter(sent))
    assert answer.accepted == 1800
    sizes = [(len(json.loads(body)["events"]), len(body)) for body in flaky.bodies]
    assert sum(count for count, _ in sizes) == 1800
    assert max(count for count, _ in sizes) <= 1000
    assert max(size for _, size in sizes) <= 1024 * 1024
    assert len(sizes) == 4


def test_rejections_come_back_under_the_indices_of_the_caller(either: str, flaky: Flaky) -> None:
    sent = events(flaky, 2500)
    too_late = Event(
        user_id=flaky.user_id,
        item_id="i1",
        action="view",
        timestamp=datetime.now(UTC) + timedelta(days=1),
    )
    too_large = Event(
        user_id=flaky.user_id,
        item_id="i1",
        action="view",
        timestamp=NOON,
        properties={"wide": "x" * 2_000_000},
    )
    no_json = Event(
        user_id=flaky.user_id,
        item_id="i1",
        action="view",
        timestamp=NOON,
        properties={"a": object()},
    )
    sent[3], sent[1500], sent[2400], sent[2499] = too_late, too_large, no_json, too_late
    with asking(either, flaky.url) as kairos:
        answer = kairos.ingest(sent)
    assert [(refused.index, refused.code) for refused in answer.rejected] == [
        (3, "in_the_future"),
        (1500, "event_too_large"),
        (2400, "not_json"),
        (2499, "in_the_future"),
    ]
    assert answer.accepted == 2496


def test_no_events_need_no_request(either: str, flaky: Flaky) -> None:
    with asking(either, flaky.url) as kairos:
        assert kairos.ingest([]).accepted == 0
    assert flaky.asked == []


def test_a_key_goes_along_and_is_never_shown(
    either: str, flaky: Flaky, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAIROS_API_KEY", "kairos_from_the_environment")
    for given, expected in ((None, "kairos_from_the_environment"), ("kairos_own", "kairos_own")):
        with asking(either, flaky.url, api_key=given) as kairos:
            with pytest.raises(KairosError) as raised:
                kairos.list_models()
            assert flaky.headers[-1]["Authorization"] == f"Bearer {expected}"
            assert raised.value.code == "unauthenticated"
            assert expected not in repr(raised.value) + repr(vars(kairos.client))


def test_a_client_may_be_used_by_many_threads(flaky: Flaky) -> None:
    flaky.mishaps.extend(AMID * 3)
    with asking("blocking", flaky.url) as kairos, ThreadPoolExecutor(8) as pool:
        told = [*pool.map(lambda event: kairos.ingest([event]), events(flaky, 40))]
    assert sum(answer.accepted + answer.duplicates for answer in told) == 40
    assert rows(flaky) == 40
