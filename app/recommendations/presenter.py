"""The response to a recommendation request, with titles and categories from the item overlay."""

from collections.abc import Iterable

from app.http.types import format_instant, format_instants
from app.recommendations.schemas import (
    AttendedEvent,
    Attention,
    Contribution,
    EventContribution,
    GroupIntensity,
    ItemFacts,
    LeftOut,
    Reasons,
    RecommendationAnswer,
    RecommendedItem,
    ScorePart,
    ScoreTerm,
)
from app.serving.item_overlay import ItemOverlayView
from model.clock import MICROSECONDS_PER_SECOND
from model.inference import answers
from model.inference.answers import AttentionOverHistory, Recommendation, ScoredItem
from model.inference.sentences import Words, write_sentence


def to_response(
    recommendation: Recommendation,
    *,
    recommendation_id: str,
    model_version: str,
    query_time: int,
    overlay: ItemOverlayView,
    with_heads: bool,
    words: Words | None,
    warnings: tuple[str, ...],
) -> RecommendationAnswer:
    """Build the response for a recommendation.

    Args:
        query_time: epoch microseconds.
        overlay: of the model's catalog.
        with_heads: include the attention weights of each head.
        words: in which to write the sentences of items that have reasons; None if none has.
    """
    attention = recommendation.attention
    return RecommendationAnswer(
        recommendation_id=recommendation_id,
        model_version=model_version,
        query_time=format_instant(query_time),
        history_used=recommendation.history_used,
        unknown_item_ids=recommendation.unknown_item_ids,
        fallback=recommendation.fallback,
        items=to_recommended_items(recommendation.items, overlay, words),
        attention=None
        if attention is None
        else _to_attention(attention, overlay, query_time, with_heads=with_heads),
        warnings=warnings,
    )


def to_recommended_items(
    items: Iterable[ScoredItem], overlay: ItemOverlayView, words: Words | None = None
) -> tuple[RecommendedItem, ...]:
    """Add their current titles and categories to scored items, best first.

    Args:
        words: in which to write the sentences of items that have reasons; None if none has.
    """
    return tuple(
        RecommendedItem(
            item_id=item.item_id,
            score=item.score,
            rank=rank,
            reason=item.reason,
            title=overlay.title(item.row),
            categories=overlay.categories(item.row),
            parts=None if item.parts is None else tuple(map(_to_part, item.parts)),
            reasons=None if words is None else _to_reasons(item, overlay, words),
        )
        for rank, item in enumerate(items, start=1)
    )


def _to_part(part: answers.ScorePart) -> ScorePart:
    terms = tuple(ScoreTerm(term.name, term.effect) for term in part.terms)
    return ScorePart(part.name, part.share, terms)


def _to_reasons(item: ScoredItem, overlay: ItemOverlayView, words: Words) -> Reasons | None:
    reasons = item.reasons
    if reasons is None:
        return None
    facts = reasons.facts
    follows_id = follows_title = None
    if facts.follows_row is not None:
        follows_id = overlay.item_id(facts.follows_row)
        follows_title = overlay.title(facts.follows_row)
    return Reasons(
        sentence=write_sentence(item, reasons, words, follows_title or follows_id),
        contributions=tuple(_to_contribution(one, overlay) for one in reasons.contributions),
        facts=ItemFacts(
            action=facts.action,
            times=facts.times,
            last_days=facts.last_days,
            popularity_ratio=facts.popularity_ratio,
            recent_events=facts.recent_events,
            earlier_events=facts.earlier_events,
            trained_events=facts.trained_events,
            follows_item_id=follows_id,
            follows_title=follows_title,
        ),
    )


def _to_contribution(contribution: answers.Contribution, overlay: ItemOverlayView) -> Contribution:
    events = tuple(
        EventContribution(
            item_id=one.event.item_id,
            title=overlay.title(one.row),
            timestamp=format_instant(one.event.at),
            action=one.event.action,
            value=one.value,
        )
        for one in contribution.events
    )
    return Contribution(contribution.kind, contribution.value, events)


def _to_attention(
    attention: AttentionOverHistory,
    overlay: ItemOverlayView,
    query_time: int,
    *,
    with_heads: bool,
) -> Attention:
    occlusion = attention.occlusion
    changes: list[float | None] = [None] * len(attention.events)
    for one in () if occlusion is None else occlusion.left_out:
        for index in one.indices:
            changes[index] = one.change
    timestamps = format_instants([event.at for event in attention.events])
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
                title=overlay.title(row),
                timestamp=timestamp,
                age_seconds=(query_time - event.at) / MICROSECONDS_PER_SECOND,
                action=event.action,
                weight=weight,
                occlusion=change,
                categories=overlay.categories(row),
            )
            for event, row, timestamp, weight, change in zip(
                attention.events,
                attention.rows,
                timestamps,
                attention.weights,
                changes,
                strict=True,
            )
        ),
        heads=attention.heads if with_heads else None,
        occlusion_of_item_id=None if occlusion is None else occlusion.of_item_id,
        faithfulness=None if occlusion is None else occlusion.faithfulness,
        faithfulness_note=None if occlusion is None else occlusion.note,
        occlusion_unit=None if occlusion is None else occlusion.unit,
        occlusion_mean=None if occlusion is None else occlusion.mean_change,
        left_out=None
        if occlusion is None
        else tuple(
            LeftOut(one.indices, timestamps[one.indices[0]], one.weight, one.change)
            for one in occlusion.left_out
        ),
    )
