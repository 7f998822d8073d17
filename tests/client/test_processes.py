"""The client against a real process of the service that is killed and restarted."""

import shutil
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kairos_client import Event, KairosClient, Retries
from tests.processes import eventually, processes

NOON = datetime(2026, 2, 1, 12, tzinfo=UTC)
BATCHES = 40


@pytest.mark.slow
def test_events_are_stored_once_across_a_killed_service(
    tmp_path: Path, published: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Where the client finds the local token, another one after the restart.
    monkeypatch.setenv("KAIROS_RUNTIME_DIRECTORY", str(tmp_path / "runtime"))
    bundles = Path(shutil.copytree(published, tmp_path / "bundles"))
    sent = [
        [
            Event(
                user_id="u/1",
                item_id=f"i{batch % 20}",
                action="view",
                timestamp=NOON + timedelta(seconds=100 * batch + number),
            )
            for number in range(20)
        ]
        for batch in range(BATCHES)
    ]
    results: list[int] = []
    with processes(tmp_path, bundles) as start:
        first = start()
        patient = Retries(attempts=10_000, longest_wait_seconds=0.2, deadline_seconds=90)
        with KairosClient(first.url, retries=patient) as kairos:

            def send() -> None:
                for events in sent:
                    answer = kairos.ingest(events)
                    results.append(answer.accepted + answer.duplicates)

            sending = threading.Thread(target=send)
            sending.start()
            eventually(lambda: len(results) >= BATCHES // 4)
            first.process.kill()
            first.process.wait(10)
            start(KAIROS_PORT=str(first.port))
            sending.join(60)
            assert results == [20] * BATCHES
            history = kairos.read_user("u/1", limit=1000)
    assert len(history.events) == 20 * BATCHES
    assert {event.event_id for event in history.events} == {
        event.event_id for events in sent for event in events
    }
