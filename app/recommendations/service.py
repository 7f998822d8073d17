"""Recommendations: from a request to a response."""

from functools import partial
from uuid import uuid4

from app.context import AppContext
from app.errors import UnprocessableError
from app.histories.service import read_instant_query, read_older_items, select_predictor
from app.recommendations.presenter import to_response
from app.recommendations.schemas import RecommendationAnswer, RecommendationRequest
from app.recommendations.shadow import compare_with_shadow
from app.serving.impressions import Impression
from app.serving.item_overlay import ItemOverlayView
from model.history import Query
from model.inference.answers import Constraints, Recommendation
from model.inference.occlusion import count_left_out
from model.inference.predictor import Predictor
from model.inference.sentences import choose_words
from model.inference.steps import Steps, start
from model.inference.workload import count_recommendation


async def recommend_items(
    context: AppContext, request: RecommendationRequest
) -> RecommendationAnswer:
    """Recommend items for the history of a request at its query time.

    Raises:
        NoModelError: if no model is active.
        ModelNotFoundError: if the request pins a version that is not published.
        ModelRefusedError: if it pins a version that cannot be opened.
        UnprocessableError: if the inline history is longer than the settings allow, or the model's
            catalog lacks the item to explain.
        DatabaseUnavailableError: if the history is stored and cannot be read.
        OverloadedError: if too many requests are waiting.
    """
    requested_at = context.clock.now()
    predictor = await select_predictor(context, request)
    _require_known(predictor, request.explain_item_id)
    query, history_warnings = await read_instant_query(context, request)
    seen: frozenset[str] = frozenset()
    if request.exclude_seen:
        seen, is_complete = await read_older_items(context, request, query)
        history_warnings += () if is_complete else ("seen_items_truncated",)
    overlay = context.item_overlay.get_view(predictor.version, predictor.catalog)

    workload = count_recommendation(
        predictor.bundle,
        len(query.history),
        request.n,
        diverse=request.diversity > 0,
        left_out=_count_left_out(predictor, request, query),
        reasons=request.explain == "reasons",
    )
    recommendation = await context.infer(
        predictor,
        workload,
        start(partial(_recommend_in_steps, context, predictor, request, query, overlay, seen)),
    )
    context.metrics.recommendations.labels(recommendation.fallback or "none").inc()
    context.metrics.history_length.observe(recommendation.history_used)
    impression = Impression(
        recommendation_id=str(uuid4()),
        user_id=request.user_id,
        model_version=predictor.version,
        at=requested_at,
        fallback=recommendation.fallback,
        item_ids=tuple(item.item_id for item in recommendation.items),
    )
    if request.shown:
        context.impressions.put(impression)
        if request.model_version is None:
            compare_with_shadow(
                context,
                query,
                impression.item_ids,
                lambda overlay: _to_constraints(request, overlay, query.query_time, seen),
            )
    return to_response(
        recommendation,
        recommendation_id=impression.recommendation_id,
        model_version=predictor.version,
        query_time=query.query_time,
        overlay=overlay,
        with_heads=request.explain == "heads",
        words=choose_words(query.history) if request.explain == "reasons" else None,
        warnings=recommendation.warnings + history_warnings,
    )


def _recommend_in_steps(
    context: AppContext,
    predictor: Predictor,
    request: RecommendationRequest,
    query: Query,
    overlay: ItemOverlayView,
    seen: frozenset[str],
) -> Steps[Recommendation]:
    with context.metrics.time_stage("filter"):
        constraints = _to_constraints(request, overlay, query.query_time, seen)
    return predictor.recommend_in_steps(
        query,
        constraints,
        explain=request.explain in ("attention", "heads", "occlusion"),
        occlude=request.occlusion_unit if request.explain == "occlusion" else None,
        occlude_for=request.explain_item_id,
        reasons=request.explain == "reasons",
        stages=context.metrics.time_stage,
    )


def _count_left_out(predictor: Predictor, request: RecommendationRequest, query: Query) -> int:
    """Count what occlusion will leave out of the history in turn."""
    if request.explain != "occlusion":
        return 0
    return count_left_out(
        query.history, request.occlusion_unit, max_history=predictor.bundle.manifest.max_history
    )


def _require_known(predictor: Predictor, item_id: str | None) -> None:
    if item_id is not None and item_id not in predictor.catalog:
        raise UnprocessableError(
            f"#/explain_item_id: an explained item must be one the model knows, but {item_id!r} "
            f"is not among the {len(predictor.catalog)} of {predictor.version}; leave it out to "
            "explain the best item"
        )


def _to_constraints(
    request: RecommendationRequest,
    overlay: ItemOverlayView,
    query_time: int,
    seen: frozenset[str],
) -> Constraints:
    """Convert filters to rows of the overlay's catalog at an instant (epoch microseconds).

    Args:
        seen: items to leave out that are not in the history.
    """
    return Constraints(
        n=request.n,
        exclude_seen=request.exclude_seen,
        exclude=seen.union(request.exclude_item_ids),
        include=frozenset(request.include_item_ids) if request.include_item_ids else None,
        strict=request.strict,
        diversity=request.diversity,
        allowed=overlay.select_allowed(
            query_time,
            any_categories=request.categories.any,
            no_categories=request.categories.none,
            available_only=request.available_only,
        ),
    )
