"""Ingestion in batches: splits events into requests, and combines the responses."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import final

from kairos_client.calls import Call, Idempotency, parse_as
from kairos_client.encoding import encode_json
from kairos_client.errors import InvalidError
from kairos_client.models import Event
from kairos_client.responses.events import Ingested, RejectedEvent

MAX_BATCH_EVENTS = 1000
MAX_BATCH_BYTES = 1024 * 1024
_START, _END = b'{"events":[', b"]}"
_MAX_EVENT_BYTES = MAX_BATCH_BYTES - len(_START) - len(_END)


@dataclass(frozen=True, slots=True)
class Batch:
    """One request with events.

    Attributes:
        indices: the position of each event among all events that are ingested.
    """

    call: Call[Ingested]
    indices: tuple[int, ...]


@final
class Ingestion:
    """The batches of an `ingest` call, and their combined result."""

    def __init__(self, events: Iterable[Event]) -> None:
        self._events = events
        self._accepted = 0
        self._duplicates = 0
        self._rejected: list[RejectedEvent] = []

    def build_batches(self) -> Iterator[Batch]:
        """Yield the requests to send; reject events that do not fit into one."""
        encoded: list[bytes] = []
        indices: list[int] = []
        bytes_left = _MAX_EVENT_BYTES
        for index, event in enumerate(self._events):
            try:
                content = _encode_event(event)
            except InvalidError as error:
                self._reject(index, error.code, error.detail)
                continue
            if len(encoded) == MAX_BATCH_EVENTS or len(content) > bytes_left:
                yield _create_batch(encoded, indices)
                encoded, indices, bytes_left = [], [], _MAX_EVENT_BYTES
            encoded.append(content)
            indices.append(index)
            bytes_left -= len(content) + len(b",")
        if encoded:
            yield _create_batch(encoded, indices)

    def add_response(self, batch: Batch, response: Ingested) -> None:
        """Add the response to a batch."""
        self._accepted += response.accepted
        self._duplicates += response.duplicates
        for rejected in response.rejected:
            self._reject(batch.indices[rejected.index], rejected.code, rejected.message)

    def combine_results(self) -> Ingested:
        """Combine the results; rejected events have their index among all events."""
        return Ingested(
            accepted=self._accepted,
            duplicates=self._duplicates,
            rejected=tuple(sorted(self._rejected, key=lambda rejected: rejected.index)),
        )

    def _reject(self, index: int, code: str, message: str) -> None:
        self._rejected.append(RejectedEvent(index=index, code=code, message=message))


def _encode_event(event: Event) -> bytes:
    content = encode_json(event.to_json())
    if len(content) > _MAX_EVENT_BYTES:
        raise InvalidError(
            f"an event must fit into a body of {MAX_BATCH_BYTES} bytes, but takes {len(content)}; "
            "keep its properties small",
            code="event_too_large",
        )
    return content


def _create_batch(encoded: list[bytes], indices: list[int]) -> Batch:
    content = _START + b",".join(encoded) + _END
    # Every event has an id, so the service stores a repeated batch once.
    call = Call("ingest", "POST", "/v1/events", parse_as(Ingested), Idempotency.IDEMPOTENT, content)
    return Batch(call, tuple(indices))
