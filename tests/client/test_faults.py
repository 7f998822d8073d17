"""Retries and errors of both clients when network or service fail, over a real socket."""

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
    NoResponseError,
    RateLimitedError,
    Retries,
    UnavailableError,
    UnexpectedResponseError,
)
from tests.client.either_client import open_client
from tests.client.faulty_proxy import Fault, FaultyProxy

NOON = datetime(2026, 2, 1, 12, tzinfo=UTC)
LOSSES = [Fault.LOST_REQUEST, Fault.LOST_RESPONSE, Fault.PARTIAL_RESPONSE, Fault.GATEWAY_TIMEOUT]


def events(proxy: FaultyProxy, count: int) -> list[Event]:
    return [
        Event(user_id=proxy.user_id, item_id=f"i{number}", action="view", timestamp=NOON)
        for number in range(count)
    ]


def events_with_a_twin(proxy: FaultyProxy, count: int) -> list[Event]:
    """Events of which two differ in their ids only."""
    first, *others = events(proxy, count - 1)
    return [first, replace(first, event_id=f"twin of {first.event_id}"), *others]


@pytest.mark.parametrize("fault", [*LOSSES, Fault.UNAVAILABLE, Fault.RATE_LIMITED])
def test_events_are_stored_exactly_once_after_any_fault(
    kind: str, proxy: FaultyProxy, fault: Fault
) -> None:
    proxy.faults.extend([fault, fault])
    with open_client(kind, proxy.url) as kairos:
        result = kairos.ingest(events_with_a_twin(proxy, 5))
    assert (result.accepted + result.duplicates, result.rejected) == (5, ())
    assert proxy.count_stored_events() == 5
    assert len(proxy.requests) == 3
    assert len({*proxy.bodies}) == 1, "a retry sends the same body"


def test_reingested_events_count_as_duplicates_after_a_failure(
    kind: str, proxy: FaultyProxy
) -> None:
    sent = events(proxy, 5)
    proxy.faults.append(Fault.LOST_RESPONSE)
    with open_client(kind, proxy.url, retries=Retries(attempts=1)) as kairos:
        with pytest.raises(NoResponseError) as error:
            kairos.ingest(sent)
        assert (error.value.code, error.value.status) == ("lost_answer", None)
        assert kairos.ingest(sent).duplicates == 5
    assert proxy.count_stored_events() == 5


@pytest.mark.parametrize("fault", [*LOSSES, Fault.UNAVAILABLE])
def test_a_change_that_may_have_been_made_is_not_retried(
    kind: str, proxy: FaultyProxy, fault: Fault
) -> None:
    proxy.faults.append(fault)
    with open_client(kind, proxy.url) as kairos, pytest.raises(UnavailableError):
        kairos.roll_back(reason="it answers nonsense")
    assert proxy.requests == ["POST /v1/models/rollback"]


def test_a_rate_limited_change_is_retried(kind: str, proxy: FaultyProxy) -> None:
    proxy.faults.append(Fault.RATE_LIMITED)
    with open_client(kind, proxy.url) as kairos, pytest.raises(KairosError) as error:
        kairos.roll_back()
    assert error.value.code != "rate_limited"
    assert len(proxy.requests) == 2


@pytest.mark.parametrize("fault", LOSSES)
def test_a_read_is_retried(kind: str, proxy: FaultyProxy, fault: Fault) -> None:
    proxy.faults.append(fault)
    with open_client(kind, proxy.url) as kairos:
        assert kairos.recommend(proxy.user_id).fallback == "no_history"
    assert len(proxy.requests) == 2


def test_a_404_after_a_lost_response_means_deleted(kind: str, proxy: FaultyProxy) -> None:
    with open_client(kind, proxy.url) as kairos:
        kairos.put_items([ItemDescription(item_id="mug")])
        proxy.faults.append(Fault.LOST_RESPONSE)
        kairos.delete_item("mug")
    assert proxy.requests[1:] == ["DELETE /v1/items/mug"] * 2


@pytest.mark.slow
def test_retries_wait_for_retry_after(kind: str, proxy: FaultyProxy) -> None:
    proxy.retry_after = "1"
    proxy.faults.extend([Fault.UNAVAILABLE, Fault.RATE_LIMITED])
    with open_client(kind, proxy.url) as kairos:
        kairos.list_models()
    assert [later - earlier >= 1 for earlier, later in pairwise(proxy.at)] == [True, True]


@pytest.mark.parametrize("far", ["86400", "Fri, 31 Dec 9999 23:59:59 GMT"])
def test_retry_after_is_capped_by_longest_wait_seconds(
    kind: str, proxy: FaultyProxy, far: str
) -> None:
    proxy.retry_after = far
    proxy.faults.append(Fault.UNAVAILABLE)
    retries = Retries(longest_wait_seconds=0.1)
    with open_client(kind, proxy.url, retries=retries) as kairos:
        kairos.list_models()
    assert len(proxy.requests) == 2


def test_a_wait_beyond_the_deadline_fails_at_once(kind: str, proxy: FaultyProxy) -> None:
    proxy.retry_after = "9"
    proxy.faults.append(Fault.UNAVAILABLE)
    with open_client(kind, proxy.url, retries=Retries()) as kairos:
        began = time.monotonic()
        with pytest.raises(UnavailableError) as error:
            kairos.with_timeout(8).list_models()
        assert time.monotonic() - began < 8
    assert (error.value.code, error.value.retry_after) == ("overloaded", 9.0)


def test_a_slow_response_ends_at_the_deadline(kind: str, proxy: FaultyProxy) -> None:
    proxy.faults.append(Fault.SLOW_BODY)
    with open_client(kind, proxy.url) as kairos:
        began = time.monotonic()
        with pytest.raises(NoResponseError):
            kairos.with_timeout(0.5).list_models()
        assert time.monotonic() - began < 8, "the whole body takes longer"


def test_no_connection_is_unavailable_and_not_a_lost_response(kind: str) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{probe.getsockname()[1]}"
    retries = Retries(attempts=3, first_wait_seconds=0.01)
    with (
        open_client(kind, url, retries=retries) as kairos,
        pytest.raises(UnavailableError) as error,
    ):
        kairos.roll_back()
    assert not isinstance(error.value, NoResponseError)
    assert (error.value.code, error.value.status) == ("no_connection", None)


def test_the_error_is_that_of_the_last_attempt(kind: str, proxy: FaultyProxy) -> None:
    proxy.faults.extend([Fault.UNAVAILABLE, Fault.RATE_LIMITED])
    retries = Retries(attempts=2, first_wait_seconds=0.01)
    with (
        open_client(kind, proxy.url, retries=retries) as kairos,
        pytest.raises(RateLimitedError) as error,
    ):
        kairos.list_models()
    assert (error.value.retry_after, error.value.request_id) == (0.0, "r1")


def test_an_invalid_request_is_not_retried(kind: str, proxy: FaultyProxy) -> None:
    with open_client(kind, proxy.url) as kairos, pytest.raises(InvalidError):
        kairos.recommend("u1", n=0)
    assert len(proxy.requests) == 1


def test_json_of_another_program_is_unexpected(kind: str, proxy: FaultyProxy) -> None:
    proxy.faults.append(Fault.OTHER_PROGRAM)
    with open_client(kind, proxy.url) as kairos, pytest.raises(UnexpectedResponseError) as error:
        kairos.list_models()
    assert error.value.code == "unexpected_answer"
    assert "#/models" in error.value.detail


def test_a_html_504_is_a_lost_response(kind: str, proxy: FaultyProxy) -> None:
    proxy.faults.append(Fault.GATEWAY_TIMEOUT)
    with open_client(kind, proxy.url) as kairos, pytest.raises(NoResponseError) as error:
        kairos.roll_back()
    assert (error.value.code, error.value.status) == ("http_504", 504)


def test_probes_are_not_retried(kind: str, proxy: FaultyProxy) -> None:
    proxy.faults.append(Fault.LOST_REQUEST)
    with open_client(kind, proxy.url) as kairos, pytest.raises(NoResponseError):
        kairos.live()
    assert len(proxy.requests) == 1


def test_many_events_are_sent_in_as_few_batches_as_possible(kind: str, proxy: FaultyProxy) -> None:
    wide = "ü" * 2000
    sent = [
        Event(
            user_id=proxy.user_id,
            item_id="i1",
            action="view",
            timestamp=NOON + timedelta(seconds=number),
            properties={"wide": wide},
        )
        for number in range(600)
    ]
    sent += events(proxy, 1200)
    with open_client(kind, proxy.url) as kairos:
        result = kairos.ingest(iter(sent))
    assert result.accepted == 1800
    sizes = [(len(json.loads(body)["events"]), len(body)) for body in proxy.bodies]
    assert sum(count for count, _ in sizes) == 1800
    assert max(count for count, _ in sizes) <= 1000
    assert max(size for _, size in sizes) <= 1024 * 1024
    assert len(sizes) == 4


def test_rejected_events_have_the_index_of_the_caller(kind: str, proxy: FaultyProxy) -> None:
    sent = events(proxy, 2500)
    in_the_future = Event(
        user_id=proxy.user_id,
        item_id="i1",
        action="view",
        timestamp=datetime.now(UTC) + timedelta(days=1),
    )
    too_large = Event(
        user_id=proxy.user_id,
        item_id="i1",
        action="view",
        timestamp=NOON,
        properties={"wide": "x" * 2_000_000},
    )
    no_json = Event(
        user_id=proxy.user_id,
        item_id="i1",
        action="view",
        timestamp=NOON,
        properties={"a": object()},
    )
    sent[3], sent[1500], sent[2400], sent[2499] = in_the_future, too_large, no_json, in_the_future
    with open_client(kind, proxy.url) as kairos:
        result = kairos.ingest(sent)
    assert [(rejected.index, rejected.code) for rejected in result.rejected] == [
        (3, "in_the_future"),
        (1500, "event_too_large"),
        (2400, "not_json"),
        (2499, "in_the_future"),
    ]
    assert result.accepted == 2496


def test_no_events_need_no_request(kind: str, proxy: FaultyProxy) -> None:
    with open_client(kind, proxy.url) as kairos:
        assert kairos.ingest([]).accepted == 0
    assert proxy.requests == []


def test_a_key_is_sent_and_never_printed(
    kind: str, proxy: FaultyProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAIROS_API_KEY", "kairos_from_the_environment")
    for api_key, expected in ((None, "kairos_from_the_environment"), ("kairos_own", "kairos_own")):
        with open_client(kind, proxy.url, api_key=api_key) as kairos:
            with pytest.raises(KairosError) as error:
                kairos.list_models()
            assert proxy.headers[-1]["Authorization"] == f"Bearer {expected}"
            assert error.value.code == "unauthenticated"
            assert expected not in repr(error.value) + repr(vars(kairos.client))


def test_threads_may_share_a_client(proxy: FaultyProxy) -> None:
    proxy.faults.extend(LOSSES * 3)
    with open_client("sync", proxy.url) as kairos, ThreadPoolExecutor(8) as pool:
        responses = [*pool.map(lambda event: kairos.ingest([event]), events(proxy, 40))]
    assert sum(response.accepted + response.duplicates for response in responses) == 40
    assert proxy.count_stored_events() == 40
