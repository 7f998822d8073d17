"""Writers who send until they are told that it was kept, and what the database kept of it."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from sqlalchemy import text

from app.db.engine import open_engine
from tests.promises import mixture
from tests.promises.load import Answer, Connection, Request, request

BATCH = 20
_PAUSE_SECONDS = 0.02


@dataclass
class Writers:
    """Several writers, each with batches of events that nobody else sends.

    Attributes:
        sent: ids of events that may have arrived.
        acknowledged: ids of events the service said it has kept.
        wrong: answers that were neither an acknowledgement nor a request to come back.
    """

    writers: int = 4
    sent: set[str] = field(default_factory=set)
    acknowledged: set[str] = field(default_factory=set)
    answers: int = 0
    replayed: int = 0
    duplicates: int = 0
    wrong: list[Answer] = field(default_factory=list)
    _next: dict[int, int] = field(default_factory=dict)

    async def write(
        self, port: int, *, until: Callable[[], bool], only_again: bool = False
    ) -> None:
        """Write on until told to stop; what was not acknowledged by then is sent again later."""
        await asyncio.gather(
            *(self._write(port, writer, until, only_again) for writer in range(self.writers))
        )

    async def finish(self, port: int) -> None:
        """Send again what was not acknowledged, until it is."""
        await self.write(port, until=lambda: False, only_again=True)

    async def _write(
        self, port: int, writer: int, until: Callable[[], bool], only_again: bool
    ) -> None:
        connection = Connection(port)
        while not until():
            number = self._next.get(writer, 0)
            ids = {f"e{writer}-{number}-{place}" for place in range(BATCH)}
            if only_again and not ids & self.sent:
                break
            self.replayed += bool(ids & self.sent)
            self.sent |= ids
            answer = await connection.ask(_batch(writer, sorted(ids)))
            self.answers += 1
            if answer.status == 200:
                told = answer.json()
                assert told["accepted"] + told["duplicates"] == BATCH
                self.duplicates += told["duplicates"]
                self.acknowledged |= ids
                self._next[writer] = number + 1
            else:
                if answer.status not in {0, 503}:
                    self.wrong.append(answer)
                await asyncio.sleep(_PAUSE_SECONDS)
        connection.close()


def kept(database_url: str) -> list[str]:
    """The ids of all events that the database holds."""
    engine = open_engine(database_url)
    try:
        with engine.connect() as connection:
            return list(connection.scalars(text("SELECT event_id FROM events")))
    finally:
        engine.dispose()


def _batch(writer: int, ids: list[str]) -> Request:
    events = [
        {
            "event_id": event_id,
            "user_id": f"u{writer}",
            "item_id": "i1",
            "action": "view",
            "timestamp": mixture.BEGAN,
        }
        for event_id in ids
    ]
    return request("POST", "/v1/events", {"events": events}, name="ingest")
