"""An item's stored events over time, counted per day, week or month of the UTC calendar."""

from collections import Counter, defaultdict
from dataclasses import replace
from datetime import date

from app.context import AppContext
from app.errors import ItemNotFoundError, UnprocessableError
from app.http.types import format_instant
from app.items.repository import DailyEvents, EventSpan, ItemEventRepository
from app.items.schemas import EventCount, ItemPopularity, Step
from model.clock import MICROSECONDS_PER_DAY
from model.event_time import TimeBounds

MAX_BUCKETS = 1100
"""Buckets of one response: three years of days."""
MAX_ACTIONS = 20
"""Actions that are counted separately; the others count in the totals only."""

_EPOCH = date(1970, 1, 1).toordinal()


async def read_item_popularity(
    context: AppContext, item_id: str, *, step: Step, since: int | None, until: int | None
) -> ItemPopularity:
    """Count the events of an item from `since` to `until` (epoch microseconds, both included).

    Of very many events the newest are counted; see `ItemPopularity.is_complete`.
    A bound that is not given is that of plausible times: one event of the year 1 would stretch the
    counts over two thousand years.

    Raises:
        ItemNotFoundError: if the item is neither stored nor named by a stored event.
        UnprocessableError: if the span needs too many buckets.
        DatabaseUnavailableError: if the events cannot be read.
        OverloadedError: if too many requests are waiting.
    """

    def read(events: ItemEventRepository) -> ItemPopularity:
        if not events.exists(item_id):
            raise ItemNotFoundError(
                "an item must be stored or named by a stored event before its events can be "
                f"counted, but {item_id!r} is neither; store it with PUT /v1/items, or send events "
                "that name it"
            )
        bounds = TimeBounds.at(context.clock.now())
        whole = events.find_span(item_id, since, until)
        span = events.find_span(
            item_id,
            bounds.earliest if since is None else since,
            bounds.latest if until is None else until,
        )
        has_others = whole is not None and (
            span is None
            or (since is None and whole.first_at < bounds.earliest)
            or (until is None and whole.last_at > bounds.latest)
        )
        warnings = ("implausible_times",) if has_others else ()
        if span is None:
            return ItemPopularity(item_id, step, None, None, True, 0, (), {}, warnings)
        buckets = _number_buckets(span, step)
        response = _to_response(item_id, step, span, buckets, events.count_by_day(item_id, span))
        return replace(response, warnings=warnings)

    async with context.overviews.take_turn():
        return await context.database.read(lambda session: read(ItemEventRepository(session)))


def compute_bucket_number(instant: int, step: Step) -> int:
    """Return the consecutive number of the bucket that contains an instant (epoch microseconds)."""
    # Ordinal 1, the first of January of the year 1, was a Monday.
    ordinal = instant // MICROSECONDS_PER_DAY + _EPOCH
    if step == "day":
        return ordinal
    if step == "week":
        return (ordinal - 1) // 7
    day = date.fromordinal(ordinal)
    return day.year * 12 + day.month - 1


def compute_bucket_start(number: int, step: Step) -> int:
    """Return the first instant of a bucket, epoch microseconds."""
    if step == "day":
        ordinal = number
    elif step == "week":
        ordinal = number * 7 + 1
    else:
        ordinal = date(number // 12, number % 12 + 1, 1).toordinal()
    return (ordinal - _EPOCH) * MICROSECONDS_PER_DAY


def _number_buckets(span: EventSpan, step: Step) -> range:
    """Return the numbers of the buckets from the first event to the last."""
    numbers = range(
        compute_bucket_number(span.first_at, step), compute_bucket_number(span.last_at, step) + 1
    )
    if len(numbers) > MAX_BUCKETS:
        raise UnprocessableError(
            f"a response has at most {MAX_BUCKETS:,} buckets, but from "
            f"{format_instant(span.first_at)} to {format_instant(span.last_at)} there are "
            f"{len(numbers):,}, one for each {step}; use a longer step, or a shorter span with "
            "since and until"
        )
    return numbers


def _to_response(
    item_id: str,
    step: Step,
    span: EventSpan,
    buckets: range,
    days: list[DailyEvents],
) -> ItemPopularity:
    totals: Counter[int] = Counter()
    by_action: dict[str, Counter[int]] = defaultdict(Counter)
    for day in days:
        bucket = compute_bucket_number(day.start, step)
        totals[bucket] += day.events
        by_action[day.action][bucket] += day.events
    # The most frequent first, then by name.
    actions = sorted(by_action, key=lambda action: (-by_action[action].total(), action))
    return ItemPopularity(
        item_id=item_id,
        step=step,
        first_at=format_instant(span.first_at),
        last_at=format_instant(span.last_at),
        is_complete=span.is_complete,
        events=totals.total(),
        counts=tuple(
            EventCount(format_instant(compute_bucket_start(bucket, step)), totals[bucket])
            for bucket in buckets
        ),
        actions={
            action: tuple(by_action[action][bucket] for bucket in buckets)
            for action in actions[:MAX_ACTIONS]
        },
    )
