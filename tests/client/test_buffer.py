"""Events in the background: none lost in silence, none twice."""

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
    LostAnswerError,
    Retries,
)
from tests.app.test_serving import eventually
from tests.client.flaky import Flaky, Mishap
from tests.client.test_retries import rows

NOON = datetime(2026, 2, 1, 12, tzinfo=UTC)


@pytest.fixture
def once(flaky: Flaky) -> Iterator[KairosClient]:
    """A client that never asks again by itself."""
    with KairosClient(flaky.url, retries=Retries(attempts=1)) as kairos:
        yield kairos


def event(flaky: Flaky, number: int = 0) -> Event:
    at = NOON + timedelta(seconds=number)
    return Event(user_id=flaky.user_id, item_id="i1", action="view", timestamp=at)


def test_events_go_together_by_themselves(flaky: Flaky, once: KairosClient) -> None:
    with EventBuffer(once, seconds=0.1) as buffer:
        for number in range(20):
            buffer.add(event(flaky, number))
        eventually(lambda: not buffer.waiting)
        assert rows(flaky) == 20
        assert len(flaky.asked) == 1


def test_what_is_left_is_sent_at_the_end(flaky: Flaky, once: KairosClient) -> None:
    with EventBuffer(once, seconds=3600) as buffer:
        for number in range(2300):
            buffer.add(event(flaky, number))
    assert len(flaky.asked) == 3
    assert buffer.waiting == ()


def test_a_flush_returns_once_everything_is_kept(flaky: Flaky, once: KairosClient) -> None:
    with EventBuffer(once, seconds=3600) as buffer:
        buffer.flush()
        buffer.add(event(flaky))
        buffer.flush()
        assert rows(flaky) == 1


def test_a_failure_surfaces_and_its_events_are_tried_again(
    flaky: Flaky, once: KairosClient
) -> None:
    with EventBuffer(once, seconds=0.05) as buffer:
        flaky.mishaps.append(Mishap.LOST_ANSWER)
        buffer.add(event(flaky))
        with pytest.raises(LostAnswerError):
            buffer.flush()
        eventually(lambda: not buffer.waiting)
        assert buffer.failure is None
    assert rows(flaky) == 1
    assert len({*flaky.bodies}) == 1


def test_a_full_buffer_refuses_and_says_why(flaky: Flaky, once: KairosClient) -> None:
    flaky.mishaps.extend([Mishap.LOST_REQUEST] * 2)
    buffer = EventBuffer(once, longest=3, seconds=3600)
    for number in range(3):
        buffer.add(event(flaky, number))
    with pytest.raises(LostAnswerError):
        buffer.flush()
    with pytest.raises(BufferFullError) as raised:
        buffer.add(event(flaky, 3))
    assert isinstance(raised.value.__cause__, LostAnswerError)
    assert len(buffer.waiting) == 3
    with pytest.raises(LostAnswerError):
        buffer.close()
    assert once.ingest(buffer.waiting).accepted == 3


def test_rejected_events_are_told_and_do_not_hold_up_the_others(
    flaky: Flaky, once: KairosClient, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[tuple[Event, str]] = []
    late = Event(
        user_id=flaky.user_id,
        item_id="i1",
        action="view",
        timestamp=datetime.now(UTC) + timedelta(days=1),
    )
    with EventBuffer(once, on_rejected=lambda event, why: told.append((event, why.code))) as buffer:
        buffer.add(late)
        buffer.add(event(flaky))
    assert told == [(late, "in_the_future")]
    assert rows(flaky) == 1
    with caplog.at_level(logging.WARNING, "kairos_client"), EventBuffer(once) as buffer:
        buffer.add(late)
    ours = [it.getMessage() for it in caplog.records if it.name.startswith("kairos_client")]
    assert "in_the_future" in "".join(ours)
    assert flaky.user_id not in "".join(ours)


def test_a_callback_that_fails_stops_nothing(
    flaky: Flaky, once: KairosClient, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(event: Event, why: object) -> None:
        raise RuntimeError("out of order")

    with EventBuffer(once, on_rejected=fail) as buffer:
        buffer.add(
            Event(
                user_id=flaky.user_id,
                item_id="i1",
                action="",
                timestamp=NOON,
            )
        )
        buffer.flush()
        buffer.add(event(flaky))
    assert rows(flaky) == 1
    assert "out of order" in caplog.text


def test_a_closed_buffer_takes_no_more(flaky: Flaky, once: KairosClient) -> None:
    buffer = EventBuffer(once)
    buffer.close()
    with pytest.raises(InvalidError) as raised:
        buffer.add(event(flaky))
    assert raised.value.code == "buffer_closed"
