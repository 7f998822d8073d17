"""A count of the stored events since an instant, kept up to date by reading what was added."""

import asyncio
from collections.abc import Callable, Container, Mapping
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

Counts = dict[tuple[int, str], ItemEvents]
"""By start of the span and item."""


@final
class Tally:
    """Counts the events of a selection by item and span of time.

    Only those of given items: callers may send events of millions of others.

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
        self._counts: Counts = {}
        self._has_changed = False
        self._horizon: Horizon | None = None

    def __len__(self) -> int:
        return len(self._counts)

    @property
    def events(self) -> tuple[ItemEvents, ...]:
        """The counted events, in no order: sorting would keep all threads waiting."""
        return tuple(self._counts.values())

    async def refresh(self, database: Database, items: Container[str]) -> bool:
        """Count what was added; return whether the counts changed since the last success.

        Args:
            items: those that count, the same at each refresh.

        Raises:
            DatabaseUnavailableError: if the events cannot be read; the counts are then unchanged,
                or incomplete until the next refresh.
            OverloadedError: if too many requests wait already.
        """
        horizon = await database.read(lambda session: PopularityRepository(session).read_horizon())
        await _wait_for(database, horizon.writers)
        last = self._horizon
        if last is None or horizon.erasures != last.erasures or horizon.newest_id < last.newest_id:
            await self._count_all(database, items, horizon)
        else:
            await self._count_added(database, items, last, horizon)
        changed, self._has_changed = self._has_changed, False
        return changed

    async def _count_all(self, database: Database, items: Container[str], horizon: Horizon) -> None:
        until = self._clock() + _MAX_AHEAD
        counts: Counts = {}
        since: int | None = self.selection.since
        while since is not None:
            added, since = await self._count_slice(database, items, counts, horizon, since, until)
            counts.update(added)
        if await asyncio.to_thread(_differ, counts, self._counts):
            self._has_changed = True
        self._counts, self._horizon = counts, horizon

    async def _count_slice(
        self,
        database: Database,
        items: Container[str],
        counts: Counts,
        horizon: Horizon,
        since: int,
        until: int,
    ) -> tuple[Counts, int | None]:
        """Count a slice of time; return also where the next begins, None after the last."""

        def count(events: PopularityRepository) -> tuple[Counts, int | None]:
            # At least a microsecond, where very many events share an instant.
            end = events.find_slice_end(since, SLICE)
            end = until if end is None else min(max(end, since + 1), until)
            found = events.count_between(self.selection, since, end, horizon.newest_id)
            return _add(counts, found, items), end if end < until else None

        return await database.read(lambda session: count(PopularityRepository(session)))

    async def _count_added(
        self, database: Database, items: Container[str], last: Horizon, horizon: Horizon
    ) -> None:
        until = self._clock() + _MAX_AHEAD
        for after in range(last.newest_id, horizon.newest_id, SLICE):
            through = min(after + SLICE, horizon.newest_id)
            added = await self._read_added(database, items, after, through, until)
            self._counts.update(added)
            self._horizon = horizon._replace(newest_id=through)
            self._has_changed = self._has_changed or bool(added)
        self._horizon = horizon

    async def _read_added(
        self,
        database: Database,
        items: Container[str],
        after_id: int,
        through_id: int,
        until: int,
    ) -> Counts:
        def read(events: PopularityRepository) -> Counts:
            found = events.count_added(self.selection, after_id, through_id, until)
            return _add(self._counts, found, items)

        return await database.read(lambda session: read(PopularityRepository(session)))


def _add(
    counts: Mapping[tuple[int, str], ItemEvents], found: list[ItemEvents], items: Container[str]
) -> Counts:
    """Return the counts of the found events of some items, each with what was counted before.

    It changes nothing, since a read may be done twice, or end after its caller gave up.
    """
    added: Counts = {}
    for one in found:
        if one.item_id not in items:
            continue
        key = one.start, one.item_id
        known = added.get(key) or counts.get(key)
        added[key] = (
            one
            if known is None
            else one._replace(
                events=one.events + known.events, last_at=max(one.last_at, known.last_at)
            )
        )
    return added


def _differ(counts: Counts, others: Counts) -> bool:
    """Return whether any count differs; `!=` would keep all other threads waiting."""
    return len(counts) != len(others) or any(
        others.get(key) != count for key, count in counts.items()
    )


async def _wait_for(database: Database, writers: frozenset[str]) -> None:
    """Wait until the transactions that may add events have ended."""
    while writers:
        await asyncio.sleep(_PAUSE_SECONDS)
        writers &= await database.read(lambda session: PopularityRepository(session).list_writers())
