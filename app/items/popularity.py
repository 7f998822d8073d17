"""How often an item was chosen over time, counted from the stored events."""

from collections import Counter
from collections.abc import Iterable
from typing import final

from app.context import AppContext
from app.errors import ItemNotFoundError, UnprocessableError
from app.http.types import format_instant
from app.items.calendar import Step, number_of, start_of
from app.items.repository import DayOfEvents, ItemEventRepository, SpanOfEvents
from app.items.schemas import EventCount, ItemPopularity

MOST_BUCKETS = 1100
"""Buckets of one answer: three years of days."""
MOST_ACTIONS = 20
"""Actions whose events are counted apart; those of the others count in the whole."""


@final
class PopularityService:
    """Counts the stored events of one item, bucket by bucket."""

    def __init__(self, context: AppContext) -> None:
        self._context = context

    async def over_time(
        self, item_id: str, *, step: Step, since: int | None, until: int | None
    ) -> ItemPopularity:
        """The events of an item from `since` to `until` (epoch microseconds, both included).

        Raises:
            ItemNotFoundError: if the item is neither stored nor in any stored event.
            UnprocessableError: if there would be too many buckets.
            DatabaseUnavailableError: if the events cannot be read.
            OverloadedError: if too many requests wait already.
        """

        def read(events: ItemEventRepository) -> ItemPopularity:
            if not events.know(item_id):
                raise _unknown(item_id)
            span = events.span(item_id, since, until)
            if span is None:
                return ItemPopularity(item_id, step, None, None, 0, (), {})
            numbers = _numbers(span, step)
            actions = events.most_frequent_actions(item_id, span, MOST_ACTIONS)
            return _told(item_id, step, span, numbers, actions, events.days(item_id, span, actions))

        return await self._context.database.read(lambda session: read(ItemEventRepository(session)))


def _numbers(span: SpanOfEvents, step: Step) -> range:
    """The numbers of the buckets from the first event to the last."""
    numbers = range(number_of(span.first_at, step), number_of(span.last_at, step) + 1)
    if len(numbers) > MOST_BUCKETS:
        raise UnprocessableError(
            f"an answer has at most {MOST_BUCKETS:,} buckets, but from "
            f"{format_instant(span.first_at)} to {format_instant(span.last_at)} there are "
            f"{len(numbers):,}, one for each {step}; ask "
            "for a longer step, or for a shorter span with since and until"
        )
    return numbers


def _told(
    item_id: str,
    step: Step,
    span: SpanOfEvents,
    numbers: range,
    actions: Iterable[str],
    days: list[DayOfEvents],
) -> ItemPopularity:
    every: Counter[int] = Counter()
    apart: dict[str, Counter[int]] = {action: Counter() for action in actions}
    for day in days:
        number = number_of(day.start, step)
        every[number] += day.events
        if day.action is not None:
            apart[day.action][number] += day.events
    return ItemPopularity(
        item_id=item_id,
        step=step,
        first_at=format_instant(span.first_at),
        last_at=format_instant(span.last_at),
        events=span.events,
        counts=tuple(
            EventCount(format_instant(start_of(number, step)), every[number]) for number in numbers
        ),
        actions={
            action: tuple(counts[number] for number in numbers) for action, counts in apart.items()
        },
    )


def _unknown(item_id: str) -> ItemNotFoundError:
    return ItemNotFoundError(
        "an item must be stored or in a stored event before its events can be counted, but "
        f"{item_id!r} is neither; store it with PUT /v1/items, or send events that name it"
    )
