"""A count of the stored events since an instant, kept up to date by reading what was added."""

import asyncio
from collections.abc import Callable
from typing import final

from app.db.database import Database
from app.popularity.repository import (
    Horizon,
    ItemEvents,
    PopularityRepository,
    Selection,
)
from model.clock import MICROSECONDS_PER_SECOND, now

SLICE = 50_000
"""Events that one transaction reads, about: others take their turns in between."""

_MAX_AHEAD = 300 * MICROSECONDS_PER_SECOND
_PAUSE_SECONDS = 0.05


@final
class Tally:
    """Counts the events of a selection by item and span of time.

    A refresh reads the events with ids beyond those of the last one. It waits for the transactions
    that were adding events when it began, so that no event appears behind it. The first refresh
    counts everything, and so does one after a user was erased or events vanished otherwise.
    """

    def __init__(self, selection: Selection, *, clock: Callable[[], int] = now) -> None:
        """Start without a count.

        Args:
            clock: the current time, epoch microseconds; events of later instants do not count.
        """
        self.selection = selection
        self._clock = clock
        self._counts: dict[tuple[int, str], ItemEvents] = {}
        self._horizon: Horizon | None = None

    @property
    def events(self) -> tuple[ItemEvents, ...]:
        """The counted events, in an order of their own."""
        return tuple(sorted(self._counts.values()))

    async def refresh(self, database: Database) -> bool:
        """Count what was added; return whether the counts changed.

        Raises:
            DatabaseUnavailableError: if the events cannot be read; the counts are then unchanged,
                or incomplete until the next refresh.
            OverloadedError: if too many requests wait already.
        """
        horizon = await database.read(lambda session: PopularityRepository(session).read_horizon())
        await _wait_for(database, horizon.writers)
        last = self._horizon
        if last is None or horizon.erasures != last.erasures or horizon.newest_id < last.newest_id:
            changed = await self._count_all(database, horizon)
        else:
            changed = await self._count_added(database, last, horizon)
        return changed

    async def _count_all(self, database: Database, horizon: Horizon) -> bool:
        until = self._clock() + _MAX_AHEAD
        counts: dict[tuple[int, str], ItemEvents] = {}
        since: int | None = self.selection.since
        while since is not None:
            found, since = await self._count_slice(database, horizon, since, until)
            _add(counts, found)
        changed = counts != self._counts
        self._counts, self._horizon = counts, horizon
        return changed

    async def _count_slice(
        self, database: Database, horizon: Horizon, since: int, until: int
    ) -> tuple[list[ItemEvents], int | None]:
        """Count a slice of time; return also where the next begins, None after the last."""

        def count(events: PopularityRepository) -> tuple[list[ItemEvents], int | None]:
            # At least a microsecond, where very many events share an instant.
            end = events.find_slice_end(since, SLICE)
            end = until if end is None else min(max(end, since + 1), until)
            found = events.count_between(self.selection, since, end, horizon.newest_id)
            return found, end if end < until else None

        return await database.read(lambda session: count(PopularityRepository(session)))

    async def _count_added(self, database: Database, last: Horizon, horizon: Horizon) -> bool:
        until, changed = self._clock() + _MAX_AHEAD, False
        for after in range(last.newest_id, horizon.newest_id, SLICE):
            through = min(after + SLICE, horizon.newest_id)
            found = await self._read_added(database, after, through, until)
            _add(self._counts, found)
            self._horizon = horizon._replace(newest_id=through)
            changed = changed or bool(found)
        self._horizon = horizon
        return changed

    async def _read_added(
        self, database: Database, after_id: int, through_id: int, until: int
    ) -> list[ItemEvents]:
        return await database.read(
            lambda session: PopularityRepository(session).count_added(
                self.selection, after_id, through_id, until
            )
        )


def _add(counts: dict[tuple[int, str], ItemEvents], found: list[ItemEvents]) -> None:
    for one in found:
        key = one.start, one.item_id
        known = counts.get(key)
        counts[key] = (
            one
            if known is None
            else one._replace(
                events=one.events + known.events, last_at=max(one.last_at, known.last_at)
            )
        )


async def _wait_for(database: Database, writers: frozenset[str]) -> None:
    """Wait until the transactions that may add events have ended."""
    while writers:
        await asyncio.sleep(_PAUSE_SECONDS)
        writers &= await database.read(lambda session: PopularityRepository(session).list_writers())
