"""Keeping the popularity that models read up to date with the stored events.

What sold an hour ago counts before any retraining. Every process reads the same counts from the
database, so replicas agree, and a restarted process agrees with the others.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

import numpy as np
import structlog

from app.context import AppContext
from app.errors import DatabaseUnavailableError, OverloadedError
from app.popularity.repository import ItemEvents, PopularityRepository
from model.inference.predictor import Predictor
from model.popularity import CountedEvents

_log = structlog.get_logger()


class Counted(NamedTuple):
    """A model with the stored events that it counts."""

    predictor: Predictor
    events: tuple[ItemEvents, ...]


@asynccontextmanager
async def follow_popularity(context: AppContext) -> AsyncIterator[None]:
    """Refresh at the interval of the settings during the block; never, if it is 0."""
    interval = context.settings.popularity_interval_seconds
    if not interval:
        yield
        return
    counted: dict[str, Counted] = {}
    async with context.supervisor.run_every(
        interval, "popularity", lambda: refresh_popularity(context, counted), is_essential=False
    ):
        yield


async def refresh_popularity(context: AppContext, counted: dict[str, Counted]) -> None:
    """Let every served model count the events that are stored since its training.

    While the database is unavailable, popularity stays as it is.

    Args:
        counted: the last refresh by version, which this one replaces.
    """
    predictors = {one.version: one for one in context.model_manager.list_open()}
    for version in counted.keys() - predictors.keys():
        del counted[version]
    for version, predictor in predictors.items():
        try:
            events = await _count_events(context, predictor)
        except (DatabaseUnavailableError, OverloadedError):
            return
        if events is None or events == _get_counted(predictor, counted.get(version)):
            continue
        later = _to_rows(predictor, events)
        renewed = await asyncio.to_thread(predictor.count_on, later)
        async with context.model_manager.lock:
            context.model_manager.renew(predictor, renewed)
        counted[version] = Counted(renewed, events)
        _log.info("popularity_refreshed", version=version, events=int(later.counts.sum()))


def _get_counted(predictor: Predictor, last: Counted | None) -> tuple[ItemEvents, ...]:
    """Return the stored events that an open model counts, given its version's last refresh.

    A version that was opened again has forgotten what it counted.
    """
    return () if last is None or last.predictor is not predictor else last.events


async def _count_events(context: AppContext, predictor: Predictor) -> tuple[ItemEvents, ...] | None:
    """Count the events since a model's training; None if the model reads no counts."""
    counts = predictor.bundle.recommender.counts
    if counts is None:
        return None
    base = counts.popularity.base
    ignored = predictor.bundle.manifest.recommender.ignored_actions
    rows = await context.database.read(
        lambda session: PopularityRepository(session).count(
            base.end_at, context.clock.now(), base.width, base.first_at, ignored
        )
    )
    return tuple(sorted(rows, key=lambda row: (row.last_at, row.item_id)))


def _to_rows(predictor: Predictor, events: tuple[ItemEvents, ...]) -> CountedEvents:
    """Keep the items of a model's catalog, as rows."""
    rows = [predictor.catalog.find(one.item_id) or 0 for one in events]
    known = [(row, one) for row, one in zip(rows, events, strict=True) if row]
    return CountedEvents(
        items=np.array([row for row, _ in known], dtype=np.int32),
        times=np.array([one.last_at for _, one in known], dtype=np.int64),
        counts=np.array([one.events for _, one in known], dtype=np.int32),
        last_at=max((one.last_at for _, one in known), default=0),
    )
