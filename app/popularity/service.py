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
        predictor: the open model that counts them; None if it does not yet, or forgot them because
            its version was opened again.
    """

    tally: Tally
    predictor: Predictor | None = None


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
        known = counted.get(version)
        if known is None or known.tally.selection != selection:
            known = counted[version] = Counted(Tally(selection, clock=context.clock.now))
        changed = await known.tally.refresh(context.database)
        events = known.tally.events
        # A model that was just opened counts no event beyond its training.
        if (known.predictor is predictor and not changed) or (
            known.predictor is not predictor and not events
        ):
            continue
        # Before the work: what fails is done again.
        known.predictor = None
        later = _to_rows(predictor, events)
        renewed = await asyncio.to_thread(predictor.count_on, later)
        async with context.model_manager.lock:
            context.model_manager.renew(predictor, renewed)
        known.predictor = renewed
        _log.info("popularity_refreshed", version=version, events=int(later.counts.sum()))


def _select_events(predictor: Predictor) -> Selection | None:
    """Select the events since a model's training; None if the model reads no counts."""
    counts = predictor.bundle.recommender.counts
    if counts is None:
        return None
    base = counts.popularity.base
    ignored = predictor.bundle.manifest.recommender.ignored_actions
    return Selection(base.end_at, base.width, base.first_at, tuple(ignored))


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
