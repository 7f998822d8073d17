"""Events sent in the background, so that telling them costs the caller nothing."""

import logging
import threading
from collections import deque
from collections.abc import Callable
from itertools import islice
from types import TracebackType
from typing import Self, final

from kairos_client.answers.events import RejectedEvent
from kairos_client.batches import MOST_EVENTS
from kairos_client.blocking import KairosClient
from kairos_client.errors import InvalidError, KairosError
from kairos_client.told import Event

_log = logging.getLogger("kairos_client")


class BufferFullError(KairosError):
    """More events wait than the buffer holds: they come faster than the service takes them."""


@final
class EventBuffer:
    """Collects events, and sends them in batches from a thread of its own.

    An event stays in the buffer until the service has it on disk. While the service is away the
    buffer fills up and goes on trying; what then does not fit is refused with `BufferFullError`,
    never dropped in silence. `close`, or leaving the `with` block, sends what is left, and raises
    if that fails; `waiting` then holds what was not sent. A process that dies loses what it holds.
    Threads do not survive a fork: make the buffer in the process that uses it.

    Example:
        >>> with KairosClient("http://127.0.0.1:8000") as kairos:  # doctest: +SKIP
        ...     with EventBuffer(kairos) as buffer:
        ...         buffer.add(Event(...))

    Args:
        client: what to send with; its retries say how patiently.
        longest: events that may wait.
        seconds: how long an event waits for others to go with it.
        on_rejected: called, from the buffer's thread, with each event that breaks a rule and what
            the rule is; by default its code is logged.
    """

    def __init__(
        self,
        client: KairosClient,
        *,
        longest: int = 10_000,
        seconds: float = 1.0,
        on_rejected: Callable[[Event, RejectedEvent], None] | None = None,
    ) -> None:
        self._client = client
        self._longest = longest
        self._seconds = seconds
        self._on_rejected = on_rejected or _log_rejected
        self._events: deque[Event] = deque()
        self._added = 0
        self._sent = 0
        self._failures = 0
        self._failure: Exception | None = None
        self._wanted = 0
        self._is_closing = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._work, name="kairos-events", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> tuple[Event, ...]:
        """The events that the service is not yet known to have."""
        with self._changed:
            return tuple(self._events)

    @property
    def failure(self) -> Exception | None:
        """Why the last attempt to send failed; None if it did not."""
        return self._failure

    def add(self, event: Event) -> None:
        """Have an event sent soon; takes microseconds.

        Raises:
            BufferFullError: if too many wait already; its cause says why they do.
            InvalidError: if the buffer is closed.
        """
        with self._changed:
            if self._is_closing:
                raise InvalidError(
                    "events go into an open buffer, but this one is closed; make another",
                    code="buffer_closed",
                )
            if len(self._events) >= self._longest:
                raise BufferFullError(
                    f"at most {self._longest} events may wait, and that many do; see the cause, "
                    "add later, or make the buffer longer",
                    code="buffer_full",
                ) from self._failure
            self._events.append(event)
            self._added += 1
            if len(self._events) in {1, MOST_EVENTS}:
                self._changed.notify_all()

    def flush(self) -> None:
        """Wait until every event added so far is on the service's disk.

        Raises:
            KairosError: if sending fails meanwhile; the events stay, and go on being tried.
        """
        with self._changed:
            target, failures = self._added, self._failures
            self._wanted = max(self._wanted, target)
            self._changed.notify_all()
            self._changed.wait_for(
                lambda: (
                    self._sent >= target or self._failures > failures or not self._thread.is_alive()
                )
            )
            if self._sent < target and self._failure is not None:
                raise self._failure

    def close(self) -> None:
        """Send what is left, and stop.

        Raises:
            KairosError: if that fails; `waiting` holds what was not sent.
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

    def _work(self) -> None:
        """Send until the buffer is closed and empty, or closed and sending fails."""
        while batch := self._next_batch():
            is_last_chance = self._is_closing
            try:
                answer = self._client.ingest(batch)
            except Exception as failure:
                self._note_failure(failure)
                if is_last_chance:
                    return
                continue
            with self._changed:
                for _ in batch:
                    self._events.popleft()
                self._sent += len(batch)
                self._failure = None
                self._changed.notify_all()
            for told in answer.rejected:
                self._tell(batch[told.index], told)

    def _next_batch(self) -> list[Event]:
        """The events to send next, once they are due; none when all is done."""
        with self._changed:
            self._changed.wait_for(lambda: self._events or self._is_closing)
            self._changed.wait_for(
                lambda: self._is_wanted_now() or len(self._events) >= MOST_EVENTS, self._seconds
            )
            return [*islice(self._events, MOST_EVENTS)]

    def _is_wanted_now(self) -> bool:
        return self._is_closing or self._sent < self._wanted

    def _note_failure(self, failure: Exception) -> None:
        """Take a failure down, and let a while pass."""
        # The code alone: a message may repeat a value, and values do not belong into logs.
        why = failure.code if isinstance(failure, KairosError) else type(failure).__name__
        _log.warning("events are kept and tried again: %s", why)
        with self._changed:
            self._failure = failure
            self._failures += 1
            self._wanted = 0
            self._changed.notify_all()
            self._changed.wait_for(self._is_wanted_now, self._seconds)

    def _tell(self, event: Event, told: RejectedEvent) -> None:
        try:
            self._on_rejected(event, told)
        except Exception:
            _log.exception("the callback for rejected events failed")


def _log_rejected(_: Event, told: RejectedEvent) -> None:
    _log.warning("an event was rejected: %s", told.code)
