"""From a request to an answer: find the history, ask the model, account for both."""

from typing import final
from uuid import uuid4

from app.errors import UnprocessableError
from app.events.repository import EventRepository
from app.parts import Parts
from app.recommendations.schemas import (
    AttendedEvent,
    Attention,
    GroupIntensity,
    InlineEvent,
    RecommendationAnswer,
    RecommendationRequest,
    RecommendedItem,
)
from app.wire import rfc_3339
from model.bundle.answer import Answer, AttentionOverHistory, Constraints
from model.bundle.bundle import Bundle
from model.catalog import Catalog
from model.clock import MICROSECONDS_PER_SECOND, now
from model.history import Event, Query


@final
class RecommendationService:
    """Answers recommendation requests."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def recommend(self, asked: RecommendationRequest) -> RecommendationAnswer:
        """The best items for this history at this instant.

        Raises:
            NoModelError: if no bundle is being served.
            UnprocessableError: if the inline history is longer than this service allows.
            DatabaseUnavailableError: if the history is stored, and cannot be read.
            OverloadedError: if too many requests wait already.
        """
        bundle = self._parts.serving.require()
        query_time = now() if asked.query_time is None else asked.query_time
        with self._parts.metrics.stage("history"):
            inline = self._inline_history(asked)
            stored = await self._stored_history(asked, query_time)
            query = Query.as_of(
                _join(stored, inline),
                query_time,
                user_id=asked.user_id,
                query_time_withheld=asked.query_time_withheld,
            )
        explain = asked.explain != "none"
        constraints = _constraints(asked)
        answer = await self._parts.infer(lambda: bundle.answer(query, constraints, explain=explain))
        self._parts.metrics.recommendations.labels(answer.fallback or "none").inc()
        self._parts.metrics.history_length.observe(answer.history_used)
        warnings = answer.warnings
        if any(event.at > query_time for event in inline):
            warnings = (*warnings, "events_after_query_time")
        with self._parts.metrics.stage("answer"):
            return _account(asked, bundle, query_time, answer, warnings)

    def _inline_history(self, asked: RecommendationRequest) -> list[Event]:
        sent: list[InlineEvent] = asked.history or []
        longest = self._parts.settings.max_history
        if len(sent) > longest:
            raise UnprocessableError(
                f"an inline history holds at most {longest} events, but this one has {len(sent)}; "
                "send the most recent ones"
            )
        return [Event(event.item_id, event.timestamp, event.action) for event in sent]

    async def _stored_history(self, asked: RecommendationRequest, query_time: int) -> list[Event]:
        user_id = asked.user_id
        if user_id is None or (asked.history is not None and not asked.merge):
            return []
        longest = self._parts.settings.max_history
        return await self._parts.database.read(
            lambda session: EventRepository(session).history(user_id, query_time, longest)
        )


def _join(stored: list[Event], inline: list[Event]) -> list[Event]:
    """Both histories, with what is in both once: a client may send what it has just ingested."""
    if not stored:
        return inline
    known = set(stored)
    return stored + [event for event in inline if event not in known]


def _constraints(asked: RecommendationRequest) -> Constraints:
    return Constraints(
        n=asked.n,
        exclude_seen=asked.exclude_seen,
        exclude=frozenset(asked.exclude_item_ids),
        include=frozenset(asked.include_item_ids) if asked.include_item_ids else None,
        strict=asked.strict,
    )


def _account(
    asked: RecommendationRequest,
    bundle: Bundle,
    query_time: int,
    answer: Answer,
    warnings: tuple[str, ...],
) -> RecommendationAnswer:
    return RecommendationAnswer(
        recommendation_id=str(uuid4()),
        model_version=bundle.version,
        query_time=rfc_3339(query_time),
        history_used=answer.history_used,
        unknown_item_ids=answer.unknown_item_ids,
        fallback=answer.fallback,
        items=tuple(
            RecommendedItem(
                item_id=item.item_id,
                score=item.score,
                rank=rank,
                reason=item.reason,
                title=item.title,
                categories=item.categories,
            )
            for rank, item in enumerate(answer.items, start=1)
        ),
        attention=_attention(
            answer.attention, bundle.catalog, query_time, with_heads=asked.explain == "heads"
        ),
        warnings=warnings,
    )


def _attention(
    attention: AttentionOverHistory | None, catalog: Catalog, query_time: int, *, with_heads: bool
) -> Attention | None:
    if attention is None:
        return None
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
                title=catalog.title(catalog.row(event.item_id)),
                timestamp=rfc_3339(event.at),
                age_seconds=(query_time - event.at) / MICROSECONDS_PER_SECOND,
                action=event.action,
                weight=weight,
            )
            for event, weight in zip(attention.events, attention.weights, strict=True)
        ),
        heads=attention.heads if with_heads else None,
    )
