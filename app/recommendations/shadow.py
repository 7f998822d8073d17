"""The shadow: a second version that recommends for the same requests, to compare the items."""

import asyncio
from collections.abc import Callable

import structlog

from app.context import AppContext
from app.errors import OverloadedError, OverShareError
from app.serving.item_overlay import ItemOverlayView
from model.history import Query
from model.inference.answers import Constraints, Recommendation
from model.inference.predictor import Predictor
from model.inference.steps import Steps, start
from model.inference.workload import count_recommendation

_log = structlog.get_logger()

ConstraintsFor = Callable[[ItemOverlayView], Constraints]
"""The filters of a request as rows of the catalog of an overlay."""


def compare_with_shadow(
    context: AppContext, query: Query, item_ids: tuple[str, ...], constraints_for: ConstraintsFor
) -> None:
    """Start a background task that compares the shadow's items with the returned ones.

    Does nothing if there is no shadow. While requests are waiting for the model the shadow is
    skipped, so that it costs them no time.

    Args:
        item_ids: the items that were returned, best first.
    """
    shadow = context.model_manager.active.shadow
    if shadow is None:
        return
    if context.inference.is_busy:
        context.metrics.shadow_answers.labels("skipped").inc()
        return
    task = asyncio.create_task(_compare(context, shadow, query, item_ids, constraints_for))
    context.background_tasks.add(task)
    task.add_done_callback(context.background_tasks.discard)


async def _compare(
    context: AppContext,
    shadow: Predictor,
    query: Query,
    item_ids: tuple[str, ...],
    constraints_for: ConstraintsFor,
) -> None:
    def recommend() -> Steps[Recommendation]:
        view = context.item_overlay.get_view(shadow.version, shadow.catalog)
        return shadow.recommend_in_steps(query, constraints_for(view))

    try:
        recommendation = await context.infer(
            shadow,
            count_recommendation(shadow.bundle, len(query.history), len(item_ids)),
            start(recommend),
            is_background=True,
        )
    except (OverloadedError, OverShareError):
        context.metrics.shadow_answers.labels("skipped").inc()
        return
    except Exception:
        context.metrics.shadow_answers.labels("failed").inc()
        _log.exception("shadow_failed", version=shadow.version)
        return
    shadow_ids = tuple(item.item_id for item in recommendation.items)
    union = {*shadow_ids, *item_ids}
    overlap = len({*shadow_ids} & {*item_ids}) / max(len(union), 1)
    context.metrics.shadow_answers.labels("compared").inc()
    context.metrics.shadow_overlap.observe(overlap)
    _log.info(
        "shadow_compared",
        version=shadow.version,
        overlap=round(overlap, 4),
        agrees_on_the_best=shadow_ids[:1] == item_ids[:1],
    )
