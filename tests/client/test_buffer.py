"""EventBuffer: batching, retries, rejected events and failures."""

import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from kairos_client import (
    BufferFullError,
    Event,
    EventBuffer,
    InvalidError,
    KairosClient,
    NoResponseError,
    Retries,
)
from tests.client.faulty_proxy import Fault, FaultyProxy
from tests.processes import eventually

NOON = datetime(2026, 2, 1, 12, tzinfo=UTC)


@pytest.fixture
def client(proxy: FaultyProxy) -> Iterator[KairosClient]:
    """A client without retries."""
    with KairosClient(proxy.url, retries=Retries(attempts=1)) as kairos:
        yield kairos


def event(proxy: FaultyProxy, number: int = 0) -> Event:
    at = NOON + timedelta(seconds=number)
    return Event(user_id=proxy.user_id, item_id="i1", action="view", timestamp=at)


def test_events_are_batched_after_the_interval(proxy: FaultyProxy, client: KairosClient) -> None:
    with EventBuffer(client, interval_seconds=0.1) as buffer:
        for number in range(20):
            buffer.add(event(proxy, number))
        eventually(lambda: not buffer.pending)
        assert proxy.count_stored_events() == 20
        assert len(proxy.requests) == 1


def test_closing_sends_the_pending_events(proxy: FaultyProxy, client: KairosClient) -> None:
    with EventBuffer(client, interval_seconds=3600) as buffer:
        for number in range(2300):
            buffer.add(event(proxy, number))
    assert len(proxy.requests) == 3
    assert buffer.pending == ()


def test_flush_returns_once_everything_is_stored(proxy: FaultyProxy, client: KairosClient) -> None:
    with EventBuffer(client, interval_seconds=3600) as buffer:
        buffer.flush()
        buffer.add(event(proxy))
        buffer.flush()
        assert proxy.count_stored_events() == 1


def test_flush_raises_a_failure_and_the_events_are_retried(
    proxy: FaultyProxy, client: KairosClient
) -> None:
    with EventBuffer(client, interval_seconds=0.05) as buffer:
        proxy.faults.append(Fault.LOST_RESPONSE)
        buffer.add(event(proxy))
        with pytest.raises(NoResponseError):
            buffer.flush()
        eventually(lambda: not buffer.pending)
        assert buffer.failure is None
    assert proxy.count_stored_events() == 1
    assert len({*proxy.bodies}) == 1


def test_a_full_buffer_raises_with_the_cause(proxy: FaultyProxy, client: KairosClient) -> None:
    proxy.faults.extend([Fault.LOST_REQUEST] * 2)
    buffer = EventBuffer(client, capacity=3, interval_seconds=3600)
    for number in range(3):
        buffer.add(event(proxy, number))
    with pytest.raises(NoResponseError):
        buffer.flush()
    with pytest.raises(BufferFullError) as error:
        buffer.add(event(proxy, 3))
    assert isinstance(error.value.__cause__, NoResponseError)
    assert len(buffer.pending) == 3
    with pytest.raises(NoResponseError):
        buffer.close()
    assert client.ingest(buffer.pending).accepted == 3


def test_rejected_events_are_reported_and_others_are_stored(
    proxy: FaultyProxy, client: KairosClient, caplog: pytest.LogCaptureFixture
) -> None:
    reported: list[tuple[Event, str]] = []
    late_event = Event(
        user_id=proxy.user_id,
        item_id="i1",
        action="view",
        timestamp=datetime.now(UTC) + timedelta(days=1),
    )
    with EventBuffer(
        client, on_rejected=lambda event, reason: reported.append((event, reason.code))
    ) as buffer:
        buffer.add(late_event)
        buffer.add(event(proxy))
    assert reported == [(late_event, "in_the_future")]
    assert proxy.count_stored_events() == 1
    with caplog.at_level(logging.WARNING, "kairos_client"), EventBuffer(client) as buffer:
        buffer.add(late_event)
    logged = [
        record.getMessage() for record in caplog.records if record.name.startswith("kairos_client")
    ]
    assert "in_the_future" in "".join(logged)
    assert proxy.user_id not in "".join(logged)


def test_a_failing_callback_does_not_stop_the_buffer(
    proxy: FaultyProxy, client: KairosClient, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(event: Event, reason: object) -> None:
        raise RuntimeError("out of order")

    with EventBuffer(client, on_rejected=fail) as buffer:
        buffer.add(
            Event(
                user_id=proxy.user_id,
                item_id="i1",
                action="",
                timestamp=NOON,
            )
        )
        buffer.flush()
        buffer.add(event(proxy))
    assert proxy.count_stored_events() == 1
    assert "out of order" in caplog.text


def test_a_closed_buffer_rejects_events(proxy: FaultyProxy, client: KairosClient) -> None:
    buffer = EventBuffer(client)
    buffer.close()
    with pytest.raises(InvalidError) as error:
        buffer.add(event(proxy))
    assert error.value.code == "buffer_closed"
