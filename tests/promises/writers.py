"""Concurrent writers of events, and the event ids that the database holds afterwards."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from sqlalchemy import text

from app.db.engine import open_engine
from tests.promises import mixture
from tests.promises.load import Answer, Connection, Request, build_request

BATCH = 20
_PAUSE_SECONDS = 0.02


@dataclass
class Writers:
    """Several writers, each with batches of events that no other writer sends.

    Attributes:
        sent: ids of events that may have arrived.
        acknowledged: ids of events that the service acknowledged.
        unexpected: answers other than 200, 503 and a lost connection.
    """

    writers: int = 4
    sent: set[str] = field(default_factory=set)
    acknowledged: set[str] = field(default_factory=set)
    answers: int = 0
    replayed: int = 0
    duplicates: int = 0
    unexpected: list[Answer] = field(default_factory=list)
    _next: dict[int, int] = field(default_factory=dict)

    async def write(
        self, port: int, *, until: Callable[[], bool], only_again: bool = False
    ) -> None:
        """Send batches until `until` is true; a later call repeats unacknowledged batches."""
        await asyncio.gather(
            *(self._write(port, writer, until, only_again) for writer in range(self.writers))
        )

    async def finish(self, port: int) -> None:
        """Repeat unacknowledged batches until each is acknowledged."""
        await self.write(port, until=lambda: False, only_again=True)

    async def _write(
        self, port: int, writer: int, until: Callable[[], bool], only_again: bool
    ) -> None:
        connection = Connection(port)
        while not until():
            number = self._next.get(writer, 0)
            ids = {f"e{writer}-{number}-{index}" for index in range(BATCH)}
            if only_again and not ids & self.sent:
                break
            self.replayed += bool(ids & self.sent)
            self.sent |= ids
            answer = await connection.send(_build_batch(writer, sorted(ids)))
            self.answers += 1
            if answer.status == 200:
                counts = answer.json()
                assert counts["accepted"] + counts["duplicates"] == BATCH
                self.duplicates += counts["duplicates"]
                self.acknowledged |= ids
                self._next[writer] = number + 1
            else:
                if answer.status not in {0, 503}:
                    self.unexpected.append(answer)
                await asyncio.sleep(_PAUSE_SECONDS)
        connection.close()


def read_event_ids(database_url: str) -> list[str]:
    """Read the ids of all events in a database."""
    engine = open_engine(database_url)
    try:
        with engine.connect() as connection:
            return list(connection.scalars(text("SELECT event_id FROM events")))
    finally:
        engine.dispose()


def _build_batch(writer: int, ids: list[str]) -> Request:
    events = [
        {
            "event_id": event_id,
            "user_id": f"u{writer}",
            "item_id": "i1",
            "action": "view",
            "timestamp": mixture.FIRST_AT,
        }
        for event_id in ids
    ]
    return build_request("POST", "/v1/events", {"events": events}, name="ingest")
