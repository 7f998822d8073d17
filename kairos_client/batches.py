"""Events cut into batches that the service takes, and its answers put together again."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import final

from kairos_client.answers.events import Ingested, RejectedEvent
from kairos_client.calls import Again, Call, reading
from kairos_client.errors import InvalidError
from kairos_client.told import Event
from kairos_client.wire import body

MOST_EVENTS = 1000
MOST_BYTES = 1024 * 1024
_START, _END = b'{"events":[', b"]}"
_ROOM = MOST_BYTES - len(_START) - len(_END)


@dataclass(frozen=True, slots=True)
class Batch:
    """One request's worth of events.

    Attributes:
        indices: where each of them stood among all that were given.
    """

    call: Call[Ingested]
    indices: tuple[int, ...]


@final
class Ingestion:
    """Events on their way, batch by batch, and what has become of them so far."""

    def __init__(self, events: Iterable[Event]) -> None:
        self._events = events
        self._accepted = 0
        self._duplicates = 0
        self._rejected: list[RejectedEvent] = []

    def batches(self) -> Iterator[Batch]:
        """What to send; an event that no request could carry is rejected instead."""
        written: list[bytes] = []
        indices: list[int] = []
        left = _ROOM
        for index, event in enumerate(self._events):
            try:
                content = _written(event)
            except InvalidError as refusal:
                self._reject(index, refusal.code, refusal.detail)
                continue
            if len(written) == MOST_EVENTS or len(content) > left:
                yield _batch(written, indices)
                written, indices, left = [], [], _ROOM
            written.append(content)
            indices.append(index)
            left -= len(content) + len(b",")
        if written:
            yield _batch(written, indices)

    def note(self, batch: Batch, answer: Ingested) -> None:
        """Take down what the service says of a batch."""
        self._accepted += answer.accepted
        self._duplicates += answer.duplicates
        for told in answer.rejected:
            self._reject(batch.indices[told.index], told.code, told.message)

    def answer(self) -> Ingested:
        """What became of all events, rejections under the indices they were given."""
        return Ingested(
            accepted=self._accepted,
            duplicates=self._duplicates,
            rejected=tuple(sorted(self._rejected, key=lambda told: told.index)),
        )

    def _reject(self, index: int, code: str, message: str) -> None:
        self._rejected.append(RejectedEvent(index=index, code=code, message=message))


def _written(event: Event) -> bytes:
    content = body(event.fields())
    if len(content) > _ROOM:
        raise InvalidError(
            f"an event must fit into a body of {MOST_BYTES} bytes, but takes {len(content)}; keep "
            "its properties small",
            code="event_too_large",
        )
    return content


def _batch(written: list[bytes], indices: list[int]) -> Batch:
    content = _START + b",".join(written) + _END
    # Every event carries its id, so what arrives twice is kept once.
    call = Call("ingest", "POST", "/v1/events", reading(Ingested), Again.SAFELY, content)
    return Batch(call, tuple(indices))
