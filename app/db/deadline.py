"""Deadlines of units of work, so that none keeps its thread and its connection for ever.

The thread of a unit of work runs it inside `Deadline.apply`. Its engine (see `app.db.engine`) then
names every connection that the thread uses. SQLite looks at the deadline while a statement runs.
For PostgreSQL, whose driver waits in the kernel, `cancel` ends the wait from another thread.
"""

import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, final

from app.errors import DatabaseUnavailableError

if TYPE_CHECKING:
    import psycopg

_CANCEL_SECONDS = 1.0

_current: ContextVar["Deadline | None"] = ContextVar("deadline", default=None)


@final
class Deadline:
    """The instant by which a unit of work must have ended; nobody waits for it any longer.

    Args:
        seconds: the time from now.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._ends_at = time.monotonic() + seconds
        self._is_cancelled = False
        self._lock = threading.Lock()
        self._connection: psycopg.Connection[object] | None = None
        self._released = threading.Event()

    @property
    def remaining_seconds(self) -> float:
        """The seconds that are left, at least 0."""
        return 0.0 if self._is_cancelled else max(0.0, self._ends_at - time.monotonic())

    @property
    def has_passed(self) -> bool:
        """Whether the time is over, or the work was cancelled."""
        return self.remaining_seconds == 0

    def require_time(self) -> None:
        """Check that there is time left.

        Raises:
            DatabaseUnavailableError: if there is none.
        """
        if self.has_passed:
            raise self.build_error()

    def build_error(self) -> DatabaseUnavailableError:
        """Build the error of work that did not end in time."""
        return DatabaseUnavailableError(
            f"the database must answer within {self._seconds:g} seconds, but has not; try again "
            "shortly, and see /health/ready"
        )

    @contextmanager
    def apply(self) -> Iterator[None]:
        """Make this the deadline of what the calling thread does with a database in the block."""
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)

    def hold(self, connection: "psycopg.Connection[object]") -> None:
        """Note the connection to PostgreSQL that the work uses from now on."""
        with self._lock:
            self._connection = connection

    def release(self) -> bool:
        """Forget the connection; return whether it may be used for other work.

        Not so after `cancel`: the server may cancel the statement that runs when it gets to it.
        """
        with self._lock:
            self._connection = None
            self._released.set()
            return not self._is_cancelled

    def cancel(self) -> None:
        """End the work early, without waiting for that; what has ended already stays as it is."""
        self._is_cancelled = True
        if self._connection is not None:
            threading.Thread(
                target=self._interrupt, name="kairos-database-cancel", daemon=True
            ).start()

    def _interrupt(self) -> None:
        """Ask the server to cancel the statement; if it does not, end the connection."""
        import psycopg  # noqa: PLC0415 - nothing else needs it without a connection to PostgreSQL

        with self._lock:
            # Held meanwhile, so that the connection is not back in the pool when it is cancelled.
            if self._connection is None:
                return
            self._released.clear()
            with suppress(psycopg.Error):
                self._connection.cancel_safe(timeout=_CANCEL_SECONDS)
        if self._released.wait(_CANCEL_SECONDS):
            return
        with self._lock:
            if self._connection is not None:
                _shut_socket(self._connection)


def get_deadline() -> Deadline | None:
    """Return the deadline of what the calling thread does; None for none."""
    return _current.get()


def _shut_socket(connection: "psycopg.Connection[object]") -> None:
    """Let the thread that waits for a server that hangs see the end of the connection."""
    import psycopg  # noqa: PLC0415 - as above

    # The descriptor stays the driver's; only its duplicate is closed.
    with (
        suppress(OSError, psycopg.Error),
        socket.socket(fileno=os.dup(connection.fileno())) as shared,
    ):
        shared.shutdown(socket.SHUT_RDWR)
