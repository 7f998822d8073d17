"""Asking a second version the same, to see how its answers would differ."""

import asyncio
from typing import final

import structlog

from app.context import AppContext
from app.errors import OverloadedError
from app.recommendations.constraints import constraints_of
from app.recommendations.schemas import RecommendationRequest
from model.history import Query
from model.inference.answers import Recommendation
from model.inference.predictor import Predictor

_log = structlog.get_logger()


@final
class ShadowService:
    """Compares the shadow's answers with those that were returned; nobody waits for it."""

    def __init__(self, context: AppContext) -> None:
        self._context = context

    def compare(self, asked: RecommendationRequest, query: Query, answered: Recommendation) -> None:
        """Ask the shadow, if there is one, once the model has nothing better to do.

        While requests wait for the model the shadow is skipped: it must cost them nothing.
        """
        shadow = self._context.model_manager.active.shadow
        if shadow is None:
            return
        if self._context.inference.is_busy:
            self._context.metrics.shadow_answers.labels("skipped").inc()
            return
        task = asyncio.create_task(self._compare(shadow, asked, query, answered))
        self._context.background_tasks.add(task)
        task.add_done_callback(self._context.background_tasks.discard)

    async def _compare(
        self,
        shadow: Predictor,
        asked: RecommendationRequest,
        query: Query,
        answered: Recommendation,
    ) -> None:
        metrics, shelf = self._context.metrics, self._context.item_overlay
        try:
            answer = await self._context.inference.run(
                lambda: shadow.recommend(
                    query, constraints_of(asked, shadow, shelf, query.query_time)
                )
            )
        except OverloadedError:
            metrics.shadow_answers.labels("skipped").inc()
            return
        except Exception:
            metrics.shadow_answers.labels("failed").inc()
            _log.exception("shadow_failed", version=shadow.version)
            return
        theirs = {item.item_id for item in answer.items}
        ours = {item.item_id for item in answered.items}
        overlap = len(theirs & ours) / max(len(theirs | ours), 1)
        metrics.shadow_answers.labels("compared").inc()
        metrics.shadow_overlap.observe(overlap)
        _log.info(
            "shadow_compared",
            version=shadow.version,
            overlap=round(overlap, 4),
            agrees_on_the_best=[i.item_id for i in answer.items[:1]]
            == [i.item_id for i in answered.items[:1]],
        )
