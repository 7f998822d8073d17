"""A buffer that sends events from a background thread."""

import logging
import threading
from collections import deque
from collections.abc import Callable
from itertools import islice
from types import TracebackType
from typing import Self, final

from kairos_client.batching import MAX_BATCH_EVENTS
from kairos_client.client import KairosClient
from kairos_client.errors import BufferFullError, InvalidError, KairosError
from kairos_client.models import Event
from kairos_client.responses.events import RejectedEvent

_log = logging.getLogger("kairos_client")


@final
class EventBuffer:
    """Collects events, and sends them in batches from a background thread.

    An event stays in the buffer until the service has stored it. While the service is unavailable
    the buffer fills up and keeps retrying; when it is full, `add` raises `BufferFullError`, so no
    event is dropped silently. `close`, or the end of the `with` block, sends the remaining events,
    and raises if that fails; `pending` then holds the events that were not sent. A process that
    dies loses the events in its buffer. Threads do not survive a fork: create the buffer in the
    process that uses it.

    Example:
        >>> with KairosClient("http://127.0.0.1:8000") as kairos:  # doctest: +SKIP
        ...     with EventBuffer(kairos) as buffer:
        ...         buffer.add(Event(...))

    Args:
        client: the client to send with; its `Retries` apply to each batch.
        capacity: the most events that may be pending.
        interval_seconds: how long an event waits for others to share its batch, and the wait
            after a failed batch.
        on_rejected: called from the buffer's thread with each rejected event and the reason; by
            default the reason's code is logged.
    """

    def __init__(
        self,
        client: KairosClient,
        *,
        capacity: int = 10_000,
        interval_seconds: float = 1.0,
        on_rejected: Callable[[Event, RejectedEvent], None] | None = None,
    ) -> None:
        self._client = client
        self._capacity = capacity
        self._interval_seconds = interval_seconds
        self._on_rejected = on_rejected or _log_rejected
        self._events: deque[Event] = deque()
        self._added = 0
        self._sent = 0
        self._failures = 0
        self._failure: Exception | None = None
        self._flush_target = 0
        """Events up to this number of `_added` are sent without waiting for the interval."""
        self._is_closing = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="kairos-events", daemon=True)
        self._thread.start()

    @property
    def pending(self) -> tuple[Event, ...]:
        """The events that the service has not confirmed yet."""
        with self._changed:
            return tuple(self._events)

    @property
    def failure(self) -> Exception | None:
        """The error of the last batch; None if it was sent."""
        return self._failure

    def add(self, event: Event) -> None:
        """Add an event to the next batch; return within microseconds.

        Raises:
            BufferFullError: if the buffer is full; its cause is the failure of the last batch.
            InvalidError: if the buffer is closed.
        """
        with self._changed:
            if self._is_closing:
                raise InvalidError(
                    "events are added to an open buffer, but this one is closed; create another",
                    code="buffer_closed",
                )
            if len(self._events) >= self._capacity:
                raise BufferFullError(
                    f"at most {self._capacity} events may be pending, and that many are; see the "
                    "cause, add the event later, or raise the capacity",
                    code="buffer_full",
                ) from self._failure
            self._events.append(event)
            self._added += 1
            if len(self._events) in {1, MAX_BATCH_EVENTS}:
                self._changed.notify_all()

    def flush(self) -> None:
        """Block until the service has stored every event added so far.

        Raises:
            KairosError: if a batch fails meanwhile; its events stay pending and are retried.
        """
        with self._changed:
            target, failures = self._added, self._failures
            self._flush_target = max(self._flush_target, target)
            self._changed.notify_all()
            self._changed.wait_for(
                lambda: (
                    self._sent >= target or self._failures > failures or not self._thread.is_alive()
                )
            )
            if self._sent < target and self._failure is not None:
                raise self._failure

    def close(self) -> None:
        """Send the pending events, and stop the thread.

        Raises:
            KairosError: if a batch fails; `pending` holds the events that were not sent.
        """
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        self._thread.join()
        if self._events and self._failure is not None:
            raise self._failure

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _run(self) -> None:
        """Send batches until the buffer is closed and empty, or closed and a batch fails."""
        while batch := self._wait_for_batch():
            is_last_attempt = self._is_closing
            try:
                response = self._client.ingest(batch)
            except Exception as failure:
                self._handle_failure(failure)
                if is_last_attempt:
                    return
                continue
            with self._changed:
                for _ in batch:
                    self._events.popleft()
                self._sent += len(batch)
                self._failure = None
                self._changed.notify_all()
            for rejected in response.rejected:
                self._report_rejected(batch[rejected.index], rejected)

    def _wait_for_batch(self) -> list[Event]:
        """Block until a batch is due, and return it; empty once the closed buffer is empty."""
        with self._changed:
            self._changed.wait_for(lambda: self._events or self._is_closing)
            self._changed.wait_for(
                lambda: self._is_due() or len(self._events) >= MAX_BATCH_EVENTS,
                self._interval_seconds,
            )
            return [*islice(self._events, MAX_BATCH_EVENTS)]

    def _is_due(self) -> bool:
        return self._is_closing or self._sent < self._flush_target

    def _handle_failure(self, failure: Exception) -> None:
        """Record the failure of a batch, and wait for the interval."""
        # The code only: a message may contain personal data, which must not be logged.
        reason = failure.code if isinstance(failure, KairosError) else type(failure).__name__
        _log.warning("events stay pending after a failed batch: %s", reason)
        with self._changed:
            self._failure = failure
            self._failures += 1
            self._flush_target = 0
            self._changed.notify_all()
            self._changed.wait_for(self._is_due, self._interval_seconds)

    def _report_rejected(self, event: Event, rejected: RejectedEvent) -> None:
        try:
            self._on_rejected(event, rejected)
        except Exception:
            _log.exception("the callback for rejected events failed")


def _log_rejected(_: Event, rejected: RejectedEvent) -> None:
    _log.warning("an event was rejected: %s", rejected.code)
