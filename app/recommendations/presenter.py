"""An answer as the API tells it, with a faithful account of what it rests on."""

from app.http.types import format_instant
from app.recommendations.schemas import (
    AttendedEvent,
    Attention,
    GroupIntensity,
    RecommendationAnswer,
    RecommendationRequest,
    RecommendedItem,
)
from app.serving.item_overlay import ItemOverlayView
from model.clock import MICROSECONDS_PER_SECOND
from model.inference.answers import AttentionOverHistory, Recommendation, ScoredItem
from model.inference.predictor import Predictor


def to_response(
    answer: Recommendation,
    asked: RecommendationRequest,
    *,
    recommendation_id: str,
    bundle: Predictor,
    view: ItemOverlayView,
    query_time: int,
    warnings: tuple[str, ...],
) -> RecommendationAnswer:
    """What a caller is told; `query_time` in epoch microseconds."""
    return RecommendationAnswer(
        recommendation_id=recommendation_id,
        model_version=bundle.version,
        query_time=format_instant(query_time),
        history_used=answer.history_used,
        unknown_item_ids=answer.unknown_item_ids,
        fallback=answer.fallback,
        items=to_recommended_items(answer.items, view),
        attention=_attention(answer.attention, asked, view, query_time),
        warnings=warnings,
    )


def to_recommended_items(
    items: tuple[ScoredItem, ...], view: ItemOverlayView
) -> tuple[RecommendedItem, ...]:
    """Items best first, with what was last said of them."""
    return tuple(
        RecommendedItem(
            item_id=item.item_id,
            score=item.score,
            rank=rank,
            reason=item.reason,
            title=view.title(item.row),
            categories=view.categories(item.row),
        )
        for rank, item in enumerate(items, start=1)
    )


def _attention(
    attention: AttentionOverHistory | None,
    asked: RecommendationRequest,
    view: ItemOverlayView,
    query_time: int,
) -> Attention | None:
    if attention is None:
        return None
    occlusion = attention.occlusion
    changes = (None,) * len(attention.events) if occlusion is None else occlusion.changes
    return Attention(
        layer="last",
        aggregation="mean_heads",
        normalised=attention.normalised,
        of_item_id=attention.of_item_id,
        intensities=None
        if attention.intensities is None
        else tuple(GroupIntensity(*named) for named in attention.intensities),
        events=tuple(
            AttendedEvent(
                item_id=event.item_id,
                title=view.title(row),
                timestamp=format_instant(event.at),
                age_seconds=(query_time - event.at) / MICROSECONDS_PER_SECOND,
                action=event.action,
                weight=weight,
                occlusion=change,
                categories=view.categories(row),
            )
            for event, row, weight, change in zip(
                attention.events, attention.rows, attention.weights, changes, strict=True
            )
        ),
        heads=attention.heads if asked.explain == "heads" else None,
        occlusion_of_item_id=None if occlusion is None else occlusion.of_item_id,
        faithfulness=None if occlusion is None else occlusion.faithfulness,
    )
