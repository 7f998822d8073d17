"""Keeping events: each exactly once, and answered only when it is on disk."""

from typing import Any, final

from app.context import AppContext
from app.events.key import natural_key
from app.events.repository import EventRepository, KeptEvents
from app.events.schemas import EventBatch, IncomingEvent, Ingested, Refusal, RejectedEvent
from app.http.types import format_instant
from model.clock import MICROSECONDS_PER_SECOND, now

_MAX_AHEAD_SECONDS = 300


@final
class EventService:
    """Takes events in."""

    def __init__(self, context: AppContext) -> None:
        self._context = context

    async def ingest(self, batch: EventBatch) -> Ingested:
        """Keep the new events of a batch; returns after they are committed.

        Raises:
            DatabaseUnavailableError: if it is not known in time that they were kept; sending them
                again is safe.
            OverloadedError: if too many requests wait already.
        """
        received_at = now()
        places: list[int] = []
        rows: list[dict[str, Any]] = []
        rejected: list[RejectedEvent] = []
        for index, event in enumerate(batch.events):
            refusal = event if isinstance(event, Refusal) else _refuse(event, received_at)
            if refusal is not None:
                rejected.append(RejectedEvent(index, refusal.code, refusal.message))
            elif not isinstance(event, Refusal):
                places.append(index)
                rows.append(_row(event, received_at))
        kept = await self._keep(rows)
        rejected += [
            _erased(places[place], rows[place]["at"], until)
            for place, until in enumerate(kept.erased)
            if until is not None
        ]
        duplicates = len(batch.events) - len(rejected) - len(kept.new)
        self._count(kept, duplicates=duplicates, rejected=len(rejected))
        return Ingested(
            accepted=len(kept.new),
            duplicates=duplicates,
            rejected=tuple(sorted(rejected, key=lambda one: one.index)),
        )

    async def _keep(self, rows: list[dict[str, Any]]) -> KeptEvents:
        if not rows:
            return KeptEvents((), (), ())
        return await self._context.database.write(
            lambda session: EventRepository(session).keep(rows)
        )

    def _count(self, kept: KeptEvents, *, duplicates: int, rejected: int) -> None:
        ingested = self._context.metrics.events_ingested
        ingested.labels("accepted").inc(len(kept.new))
        ingested.labels("duplicate").inc(duplicates)
        ingested.labels("rejected").inc(rejected)
        for row in kept.new:
            lag = (row["received_at"] - row["at"]) / MICROSECONDS_PER_SECOND
            self._context.metrics.event_lag_seconds.observe(max(lag, 0.0))
        for version in kept.clicks:
            self._context.metrics.recommendation_clicks.labels(version).inc()


def _erased(index: int, at: int, until: int) -> RejectedEvent:
    return RejectedEvent(
        index,
        code="user_erased",
        message="#/timestamp: of an erased user only what happens later is kept, but got "
        f"{format_instant(at)}; the user was erased until {format_instant(until)}, so send it no "
        "more",
    )


def event_key(event: IncomingEvent) -> str:
    """The idempotency key: the caller's own, else a hash of what makes the event itself."""
    if event.event_id is not None:
        return event.event_id
    return natural_key(event.user_id, event.item_id, event.action, event.timestamp)


def _refuse(event: IncomingEvent, received_at: int) -> Refusal | None:
    if event.timestamp <= received_at + _MAX_AHEAD_SECONDS * MICROSECONDS_PER_SECOND:
        return None
    return Refusal(
        code="in_the_future",
        message=f"#/timestamp: an event happens at most {_MAX_AHEAD_SECONDS} seconds from now, but "
        f"got {format_instant(event.timestamp)}; set the sender's clock",
    )


def _row(event: IncomingEvent, received_at: int) -> dict[str, Any]:
    return {
        "event_id": event_key(event),
        "user_id": event.user_id,
        "item_id": event.item_id,
        "action": event.action,
        "at": event.timestamp,
        "value": event.value,
        "recommendation_id": event.recommendation_id,
        "properties": event.properties,
        "received_at": received_at,
    }
