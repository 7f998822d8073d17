"""Asking a second version the same, to see how its answers would differ."""

import asyncio
from typing import final

import structlog

from app.errors import OverloadedError
from app.parts import Parts
from app.recommendations.constraints import constraints_of
from app.recommendations.schemas import RecommendationRequest
from model.bundle.answer import Answer
from model.bundle.bundle import Bundle
from model.history import Query

_log = structlog.get_logger()


@final
class ShadowService:
    """Compares the shadow's answers with those that were returned; nobody waits for it."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def compare(self, asked: RecommendationRequest, query: Query, answered: Answer) -> None:
        """Ask the shadow, if there is one, once the model has nothing better to do.

        While requests wait for the model the shadow is skipped: it must cost them nothing.
        """
        shadow = self._parts.serving.lineup.shadow
        if shadow is None:
            return
        if self._parts.inference.is_busy:
            self._parts.metrics.shadow_answers.labels("skipped").inc()
            return
        task = asyncio.create_task(self._compare(shadow, asked, query, answered))
        self._parts.background.add(task)
        task.add_done_callback(self._parts.background.discard)

    async def _compare(
        self, shadow: Bundle, asked: RecommendationRequest, query: Query, answered: Answer
    ) -> None:
        metrics, shelf = self._parts.metrics, self._parts.shelf
        try:
            answer = await self._parts.inference.run(
                lambda: shadow.answer(query, constraints_of(asked, shadow, shelf, query.query_time))
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
