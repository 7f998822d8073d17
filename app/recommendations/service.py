"""From a request to an answer: find the history, ask the model, account for both."""

from typing import final
from uuid import uuid4

from app.context import AppContext
from app.errors import UnprocessableError
from app.histories.service import HistoryService
from app.recommendations.constraints import constraints_of
from app.recommendations.presenter import to_response
from app.recommendations.schemas import RecommendationAnswer, RecommendationRequest
from app.recommendations.shadow import ShadowService
from app.serving.impressions import Impression
from model.clock import now
from model.history import Query
from model.inference.answers import Recommendation
from model.inference.predictor import Predictor


@final
class RecommendationService:
    """Answers recommendation requests."""

    def __init__(self, context: AppContext) -> None:
        self._context = context

    async def recommend(self, asked: RecommendationRequest) -> RecommendationAnswer:
        """The best items for this history at this instant.

        Raises:
            NoModelError: if no bundle is being served.
            ModelNotFoundError: if the request insists on a version that is not published.
            ModelRefusedError: if it insists on one that cannot be opened.
            UnprocessableError: if the inline history is longer than this service allows, or the
                model does not know the item to be explained.
            DatabaseUnavailableError: if the history is stored, and cannot be read.
            OverloadedError: if too many requests wait already.
        """
        asked_at = now()
        histories = HistoryService(self._context)
        bundle = await histories.bundle(asked)
        _require_known(bundle, asked.explain_item_id)
        found = await histories.read_at_instant(asked)
        answer = await self._context.infer(lambda: self._answer(bundle, found.query, asked))
        metrics = self._context.metrics
        metrics.recommendations.labels(answer.fallback or "none").inc()
        metrics.history_length.observe(answer.history_used)
        recommendation_id = str(uuid4())
        if asked.shown:
            self._keep(recommendation_id, bundle, asked, answer, asked_at)
            if asked.model_version is None:
                ShadowService(self._context).compare(asked, found.query, answer)
        return to_response(
            answer,
            asked,
            recommendation_id=recommendation_id,
            bundle=bundle,
            view=self._context.item_overlay.view(bundle.version, bundle.catalog),
            query_time=found.query.query_time,
            warnings=answer.warnings + found.warnings,
        )

    def _keep(
        self,
        recommendation_id: str,
        bundle: Predictor,
        asked: RecommendationRequest,
        answer: Recommendation,
        at: int,
    ) -> None:
        """Note what is shown, so that the events it leads to can be told by version."""
        self._context.impressions.put(
            Impression(
                recommendation_id=recommendation_id,
                user_id=asked.user_id,
                model_version=bundle.version,
                at=at,
                fallback=answer.fallback,
                item_ids=tuple(item.item_id for item in answer.items),
            )
        )

    def _answer(
        self, bundle: Predictor, query: Query, asked: RecommendationRequest
    ) -> Recommendation:
        stages = self._context.metrics.stage
        with stages("filter"):
            constraints = constraints_of(
                asked, bundle, self._context.item_overlay, query.query_time
            )
        return bundle.recommend(
            query,
            constraints,
            explain=asked.explain != "none",
            occlude=asked.explain == "occlusion",
            occlude_for=asked.explain_item_id,
            stages=stages,
        )


def _require_known(bundle: Predictor, item_id: str | None) -> None:
    if item_id is not None and item_id not in bundle.catalog:
        raise UnprocessableError(
            f"#/explain_item_id: an explained item must be one the model knows, but {item_id!r} "
            f"is not among the {len(bundle.catalog)} of {bundle.version}; leave it out to explain "
            "the best item"
        )
