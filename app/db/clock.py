"""The service's clock: the database's time, which every process that shares the database reads."""

import math
import time
from collections.abc import Callable
from typing import final

from sqlalchemy import text
from sqlalchemy.orm import Session

from app.db.engine import open_engine
from model.clock import MICROSECONDS_PER_SECOND, now

_POSTGRESQL_TIME = text("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")


def read_time(session: Session) -> int:
    """Read the database's time, epoch microseconds; SQLite's is that of this machine."""
    if session.get_bind().dialect.name == "sqlite":
        return now()
    return int(session.execute(_POSTGRESQL_TIME).scalar_one())


def read_database_time(database_url: str) -> int:
    """Read the time of a database, epoch microseconds, over a connection of its own.

    Raises:
        DatabaseUnavailableError: if it does not answer.
    """
    engine = open_engine(database_url)
    try:
        with Session(engine) as session:
            return read_time(session)
    finally:
        engine.dispose()


@final
class ServiceClock:
    """Gives the database's time, so that replicas agree even if their machines' clocks do not.

    It is read at an interval; between two readings the machine's monotonic clock goes
    on, which steps of its wall clock do not move. Until the first reading, and with
    SQLite, whose processes share one machine, the time is that of the machine.
    """

    def __init__(
        self,
        *,
        wall: Callable[[], int] = now,
        monotonic: Callable[[], int] = lambda: time.monotonic_ns() // 1000,
    ) -> None:
        """Start with the machine's time.

        Args:
            wall: the machine's time, epoch microseconds.
            monotonic: microseconds since any instant, which never step.
        """
        self._wall = wall
        self._monotonic = monotonic
        self._ahead: int | None = None
        self.offset_seconds = math.nan

    @property
    def is_synchronized(self) -> bool:
        """Whether the database's time has been read."""
        return not math.isnan(self.offset_seconds)

    def now(self) -> int:
        """Return the database's time, epoch microseconds."""
        ahead = self._ahead
        return self._wall() if ahead is None else self._monotonic() + ahead

    def synchronize(self, session: Session) -> None:
        """Read the database's time, within a transaction of the caller."""
        if session.get_bind().dialect.name == "sqlite":
            self.offset_seconds = 0.0
            return
        # Connecting and the beginning of the transaction must not count as the round trip.
        session.execute(text("SELECT 1"))
        sent = self._monotonic()
        at = read_time(session)
        self._adjust(at - self._monotonic(), at - sent)
        self.offset_seconds = (self._wall() - self.now()) / MICROSECONDS_PER_SECOND

    def _adjust(self, least: int, most: int) -> None:
        """Move into the bounds of a reading: its time was read between the call and the reply.

        A reading with a long round trip has wide bounds, so that it moves a good estimate little or
        not at all, while a step of the database's clock is followed at once.
        """
        if self._ahead is None:
            self._ahead = (least + most) // 2
        else:
            self._ahead = min(max(self._ahead, least), most)
