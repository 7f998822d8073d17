"""When a user's next event comes: find the history, ask the model, and tell it in instants."""

import math
from datetime import UTC, datetime
from typing import final

import torch

from app.context import AppContext
from app.errors import ModelSaysNoTimeError
from app.histories.schemas import HistoryRequest
from app.histories.service import HistoryService
from app.http.types import format_instant
from app.users.schemas import NextTimeAnswer, NextTimeDensity, NextTimeQuantile
from model.clock import MICROSECONDS_PER_DAY, from_datetime, now
from model.history import Query
from model.inference.predictor import Predictor
from model.interfaces import NextTime

SHARES = (0.1, 0.5, 0.9)
GRID = tuple(step / 50 for step in range(50))
"""Where the density is told: at equal steps of probability, so that points stand where it is."""

_LAST_INSTANT = from_datetime(datetime.max.replace(tzinfo=UTC))


@final
class NextTimeService:
    """Says when users come back."""

    def __init__(self, context: AppContext) -> None:
        self._context = context

    async def estimate(self, user_id: str, at: int | None) -> NextTimeAnswer:
        """When the next event of a user comes, given that none has come until `at`.

        Raises:
            NoModelError: if no bundle is being served.
            ModelSaysNoTimeError: if the one that is says what comes next, but not when.
            DatabaseUnavailableError: if the history cannot be read.
            OverloadedError: if too many requests wait already.
        """
        histories, asked = HistoryService(self._context), HistoryRequest(user_id=user_id)
        bundle = await histories.bundle(asked)
        if not bundle.bundle.recommender.encoder.says_when:
            kind = bundle.bundle.manifest.recommender.encoder.kind
            raise ModelSaysNoTimeError(
                f"saying when needs a model that does, but {bundle.version} is of the kind "
                f"{kind!r}; train a point process such as "
                "'rmtpp', publish it and activate it"
            )
        query, _ = await histories.read(asked, now() if at is None else at)
        return await self._context.infer(lambda: _answer(bundle, user_id, query))


def _answer(bundle: Predictor, user_id: str, query: Query) -> NextTimeAnswer:
    history = bundle.look_up_history(query)
    last_at: int | None = None
    quantiles = dict.fromkeys(SHARES, None)
    density: tuple[NextTimeDensity, ...] = ()
    interval = bundle.encode(query, history).next_time if history.events else None
    if interval is not None:
        last_at = history.events[-1].at
        waited = torch.tensor(
            (query.query_time - last_at) / MICROSECONDS_PER_DAY, dtype=torch.float64
        )
        density = _density(interval, waited)
        quantiles = {
            share: _later(last_at, float(interval.quantile_after(share, waited)))
            for share in SHARES
        }
    return NextTimeAnswer(
        user_id=user_id,
        model_version=bundle.version,
        at=format_instant(query.query_time),
        history_used=len(history.events),
        last_event_at=_told(last_at),
        median=_told(quantiles[0.5]),
        quantiles=tuple(
            NextTimeQuantile(share, _told(instant)) for share, instant in quantiles.items()
        ),
        density=density,
    )


def _density(interval: NextTime, waited: torch.Tensor) -> tuple[NextTimeDensity, ...]:
    grid = [float(interval.quantile_after(share, waited)) for share in GRID]
    days = torch.tensor([day for day in grid if math.isfinite(day)], dtype=torch.float64)
    left = interval.log_density(days) - interval.log_survival(waited)
    return tuple(
        NextTimeDensity(interval_days=day, density=density)
        for day, density in zip(days.tolist(), left.exp().tolist(), strict=True)
    )


def _later(instant: int, days: float) -> int | None:
    """So many days later; None beyond the calendar."""
    wait = days * MICROSECONDS_PER_DAY
    return instant + round(wait) if wait <= _LAST_INSTANT - instant else None


def _told(instant: int | None) -> str | None:
    return None if instant is None else format_instant(instant)
