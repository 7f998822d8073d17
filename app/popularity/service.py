"""Keeping the popularity that models read up to date with the stored events.

What sold an hour ago counts before any retraining. Every process counts the same events of the
database, so replicas agree, and a restarted process agrees with the others.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import final

import numpy as np
import structlog

from app.context import AppContext
from app.popularity.repository import ItemEvents, Selection
from app.popularity.tally import Tally
from model.inference.predictor import Predictor
from model.popularity import CountedEvents

_log = structlog.get_logger()


@final
@dataclass(slots=True)
class Counted:
    """The stored events that a model counts.

    Attributes:
        item_ids: of the model's catalog, whose events alone are counted.
        predictor: the open model that counts them; None if it does not yet, or forgot them because
            its version was opened again.
        has_failed: whether the last count of them failed.
    """

    tally: Tally
    item_ids: tuple[str, ...]
    predictor: Predictor | None = None
    has_failed: bool = False


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
        counted: what the versions count, which is updated.

    Raises:
        DatabaseUnavailableError: if the events cannot be read.
        OverloadedError: if too many requests are waiting.
    """
    predictors = {one.version: one for one in context.model_manager.list_open()}
    for version in counted.keys() - predictors.keys():
        del counted[version]
    for version, predictor in predictors.items():
        selection = _select_events(predictor)
        if selection is None:
            continue
        known, item_ids = counted.get(version), predictor.catalog.item_ids
        if known is None or known.tally.selection != selection or known.item_ids != item_ids:
            known = counted[version] = Counted(Tally(selection, clock=context.clock.now), item_ids)
        # Equal, but not those of a model that is no longer open: they would stay in memory.
        known.item_ids = item_ids
        changed = await known.tally.refresh(context.database, predictor.catalog)
        # A model that was just opened counts no event beyond its training.
        is_current = not changed if known.predictor is predictor else not known.tally
        if is_current and not known.has_failed:
            continue
        # Before the work: what fails is done again.
        known.has_failed = True
        renewed, events = await asyncio.to_thread(_count_on, predictor, known.tally)
        async with context.model_manager.lock:
            context.model_manager.renew(predictor, renewed)
        known.predictor, known.has_failed = renewed, False
        _log.info("popularity_refreshed", version=version, events=events)


def _select_events(predictor: Predictor) -> Selection | None:
    """Select the events since a model's training; None if the model reads no counts."""
    counts = predictor.bundle.recommender.counts
    if counts is None:
        return None
    base = counts.popularity.base
    ignored = predictor.bundle.manifest.recommender.ignored_actions
    return Selection(base.end_at, base.width, base.first_at, tuple(ignored))


def _count_on(predictor: Predictor, tally: Tally) -> tuple[Predictor, int]:
    """Build a predictor that counts the events of a tally; return also how many they are."""
    later = _to_rows(predictor, tally.events)
    return predictor.count_on(later), int(later.counts.sum())


def _to_rows(predictor: Predictor, events: tuple[ItemEvents, ...]) -> CountedEvents:
    """Replace the items by their rows in a model's catalog."""
    row = predictor.catalog.row
    # From generators, during which other threads get their turns.
    return CountedEvents(
        items=np.fromiter((row(one.item_id) for one in events), np.int32, len(events)),
        times=np.fromiter((one.last_at for one in events), np.int64, len(events)),
        counts=np.fromiter((one.events for one in events), np.int32, len(events)),
        last_at=max((one.last_at for one in events), default=0),
    )
