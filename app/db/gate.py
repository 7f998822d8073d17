"""A gate in front of the connections of an SQLite database, to close all of them at one instant."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import final

from app.db.deadline import Deadline


@final
class ConnectionGate:
    """Lets units of work use connections at the same time, or one close all of them, alone.

    Every connection to a file shares one index of its write-ahead log, which SQLite builds anew
    only after the last of them was closed. If each were closed as it comes back, there might always
    be another one open.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._users = 0
        self._is_shut = False

    @contextmanager
    def use(self, deadline: Deadline) -> Iterator[None]:
        """Use connections in the block, as soon as nobody closes them.

        Raises:
            DatabaseUnavailableError: if that takes longer than the deadline allows.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: not self._is_shut, deadline.remaining_seconds):
                raise deadline.build_error()
            self._users += 1
        try:
            yield
        finally:
            with self._changed:
                self._users -= 1
                self._changed.notify_all()

    def close(self, close: Callable[[], None], deadline: Deadline) -> None:
        """Close all connections once nobody uses one, or what is idle when the time is over."""
        with self._changed:
            if self._is_shut:  # another unit of work closes them
                self._changed.wait_for(lambda: not self._is_shut, deadline.remaining_seconds)
                return
            self._is_shut = True
        try:
            with self._changed:
                self._changed.wait_for(lambda: self._users == 0, deadline.remaining_seconds)
            close()
        finally:
            with self._changed:
                self._is_shut = False
                self._changed.notify_all()
