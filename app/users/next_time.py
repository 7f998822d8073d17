"""The predicted time of a user's next event."""

import math

import torch

from app.context import AppContext
from app.errors import NoEventTimeError
from app.histories.schemas import HistoryRequest
from app.histories.service import read_query, select_predictor
from app.http.types import format_instant, format_optional_instant
from app.users.schemas import NextTimeAnswer, NextTimeDensity, NextTimeQuantile
from model.clock import LAST_INSTANT, MICROSECONDS_PER_DAY
from model.history import Query
from model.inference.predictor import Predictor
from model.inference.steps import Steps
from model.inference.workload import count_recommendation
from model.layers.interval_distribution import IntervalDistribution

SHARES = (0.1, 0.5, 0.9)
GRID = tuple(step / 50 for step in range(50))
"""Probabilities at which the density is evaluated: equal steps put points where the mass is."""


async def predict_next_time(
    context: AppContext, user_id: str, query_time: int | None
) -> NextTimeAnswer:
    """Predict the time of a user's next event, given that none has happened until `query_time`.

    Args:
        query_time: epoch microseconds; None for now.

    Raises:
        NoModelError: if no model is active.
        NoEventTimeError: if the active model predicts items, but no times.
        DatabaseUnavailableError: if the history cannot be read.
        OverloadedError: if too many requests are waiting.
    """
    request = HistoryRequest(user_id=user_id)
    predictor = await select_predictor(context, request)
    recommender = predictor.bundle.recommender
    if not recommender.encoder.predicts_next_time:
        raise NoEventTimeError(
            f"predicting a time needs a point process, but {predictor.version} is of the kind "
            f"{predictor.bundle.manifest.recommender.encoder.kind!r}; train one such as "
            "'rmtpp', publish it and activate it"
        )
    query, _ = await read_query(
        context, request, context.clock.now() if query_time is None else query_time
    )
    workload = count_recommendation(predictor.bundle, len(query.history), 0)
    return await context.infer(predictor, workload, _predict(predictor, user_id, query))


def _predict(predictor: Predictor, user_id: str, query: Query) -> Steps[NextTimeAnswer]:
    history = predictor.look_up_history(query)
    last_at: int | None = None
    quantiles = dict.fromkeys(SHARES, None)
    density: tuple[NextTimeDensity, ...] = ()
    zero_interval_probability = 0.0
    interval = predictor.encode(query, history).next_time if history.events else None
    yield
    if interval is not None:
        last_at = history.events[-1].at
        elapsed_days = torch.tensor(
            (query.query_time - last_at) / MICROSECONDS_PER_DAY, dtype=torch.float64
        )
        density = yield from _compute_density(interval.later, elapsed_days)
        if elapsed_days == 0:
            zero_interval_probability = float(interval.zero_probability)
        quantiles = {
            share: _add_days(last_at, float(interval.quantile_after(share, elapsed_days)))
            for share in SHARES
        }
    return NextTimeAnswer(
        user_id=user_id,
        model_version=predictor.version,
        at=format_instant(query.query_time),
        history_used=len(history.events),
        last_event_at=format_optional_instant(last_at),
        median=format_optional_instant(quantiles[0.5]),
        quantiles=tuple(
            NextTimeQuantile(share, format_optional_instant(instant))
            for share, instant in quantiles.items()
        ),
        zero_interval_probability=zero_interval_probability,
        density=density,
    )


def _compute_density(
    interval: IntervalDistribution, elapsed_days: torch.Tensor
) -> Steps[tuple[NextTimeDensity, ...]]:
    grid = []
    for share in GRID:
        grid.append(float(interval.quantile_after(share, elapsed_days)))
        yield
    days = torch.tensor([day for day in grid if math.isfinite(day)], dtype=torch.float64)
    log_density = interval.log_density(days) - interval.log_survival(elapsed_days)
    return tuple(
        NextTimeDensity(interval_days=day, density=density)
        for day, density in zip(days.tolist(), log_density.exp().tolist(), strict=True)
    )


def _add_days(instant: int, days: float) -> int | None:
    """Add days to an instant; None beyond the calendar."""
    interval = days * MICROSECONDS_PER_DAY
    return instant + round(interval) if interval <= LAST_INSTANT - instant else None
