"""Ingesting events: each is stored once, and acknowledged only after the commit."""

from app.auth.access import Caller
from app.context import AppContext
from app.db.events import (
    AddedEvents,
    EventRepository,
    EventRow,
    compute_natural_key,
    compute_sender_key,
    is_natural_key,
    is_sender_key,
)
from app.events.schemas import EventBatch, IncomingEvent, Ingested, InvalidEvent, RejectedEvent
from app.http.types import format_instant
from model.clock import MICROSECONDS_PER_SECOND, to_datetime
from model.event_time import EARLIEST_EVENT, MAX_AHEAD_SECONDS, TimeBounds


async def ingest_events(context: AppContext, batch: EventBatch, caller: Caller) -> Ingested:
    """Store the new events of a batch; return after the commit.

    Raises:
        ForbiddenError: if the caller's key does not reach the user of an event.
        DatabaseUnavailableError: if it is unknown whether the events were stored. Sending them
            again is safe.
        OverloadedError: if too many requests are waiting.
    """
    for event in batch.events:
        if isinstance(event, IncomingEvent):
            caller.require_user(event.user_id)
    received_at = context.clock.now()
    bounds = TimeBounds.at(received_at)
    rejected: list[RejectedEvent] = []
    rows: list[EventRow] = []
    positions: list[int] = []
    for position, event in enumerate(batch.events):
        if isinstance(event, InvalidEvent):
            rejected.append(RejectedEvent(position, event.code, event.message))
        elif not bounds.contain(event.timestamp):
            rejected.append(_reject_implausible(position, event, received_at))
        elif _is_reserved(event):
            rejected.append(_reject_reserved(position, event))
        else:
            positions.append(position)
            rows.append(to_row(event, received_at, user_prefix=caller.user_prefix))
    added = AddedEvents((), (), ())
    if rows:
        added = await context.database.write(lambda session: EventRepository(session).add(rows))
    rejected += [
        _reject_erased(position, row, until)
        for position, row, until in zip(positions, rows, added.erased_until, strict=True)
        if until is not None
    ]
    duplicates = len(batch.events) - len(rejected) - len(added.new)
    _count(context, added, duplicates=duplicates, rejected=len(rejected))
    return Ingested(
        accepted=len(added.new),
        duplicates=duplicates,
        rejected=tuple(sorted(rejected, key=lambda rejection: rejection.index)),
    )


def to_row(event: IncomingEvent, received_at: int, *, user_prefix: str | None = None) -> EventRow:
    """Convert an event to its row; without an `event_id`, its key is the hash of its fields.

    Args:
        user_prefix: that of the sender's key. Its event ids are unique among its own only.
    """
    sender_event_id = None if user_prefix is None else event.event_id
    if event.event_id is None:
        key = compute_natural_key(event.user_id, event.item_id, event.action, event.timestamp)
    elif user_prefix is None:
        key = event.event_id
    else:
        key = compute_sender_key(user_prefix, event.event_id)
    return EventRow(
        event_id=key,
        user_id=event.user_id,
        item_id=event.item_id,
        action=event.action,
        at=event.timestamp,
        value=event.value,
        recommendation_id=event.recommendation_id,
        properties=event.properties,
        received_at=received_at,
        sender_event_id=sender_event_id,
    )


def _is_reserved(event: IncomingEvent) -> bool:
    """Whether an id is of a form that the service gives, to an event that it would not give it."""
    if event.event_id is None or not (
        is_natural_key(event.event_id) or is_sender_key(event.event_id)
    ):
        return False
    own = compute_natural_key(event.user_id, event.item_id, event.action, event.timestamp)
    return event.event_id != own


def _reject_reserved(position: int, event: IncomingEvent) -> RejectedEvent:
    return RejectedEvent(
        position,
        code="event_id_reserved",
        message="#/event_id: the service itself gives ids of this form, from an event's fields, "
        f"but got {event.event_id} for an event with other fields; send an id of your own or none, "
        "and import exported events with kairos import-events",
    )


def _reject_implausible(position: int, event: IncomingEvent, received_at: int) -> RejectedEvent:
    if event.timestamp <= received_at:
        return RejectedEvent(
            position,
            code="too_old",
            message=f"#/timestamp: no event is from before {to_datetime(EARLIEST_EVENT).year}, but "
            f"got {format_instant(event.timestamp)}; send epoch seconds, and no 0 for a missing "
            "time",
        )
    return RejectedEvent(
        position,
        code="in_the_future",
        message=f"#/timestamp: an event happens at most {MAX_AHEAD_SECONDS} seconds from now, but "
        f"got {format_instant(event.timestamp)}; set the sender's clock",
    )


def _reject_erased(position: int, row: EventRow, until: int) -> RejectedEvent:
    return RejectedEvent(
        position,
        code="user_erased",
        message="#/timestamp: only events after the erasure are stored for an erased user, "
        f"but got {format_instant(row.at)}; the user was erased until {format_instant(until)}, "
        "so do not send it again",
    )


def _count(context: AppContext, added: AddedEvents, *, duplicates: int, rejected: int) -> None:
    metrics = context.metrics
    metrics.events_ingested.labels("accepted").inc(len(added.new))
    metrics.events_ingested.labels("duplicate").inc(duplicates)
    metrics.events_ingested.labels("rejected").inc(rejected)
    for row in added.new:
        lag = (row.received_at - row.at) / MICROSECONDS_PER_SECOND
        metrics.event_lag_seconds.observe(max(lag, 0.0))
    for version in added.clicked_versions:
        metrics.recommendation_clicks.labels(version).inc()
