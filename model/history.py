"""Events and queries as plain values, without tensors."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import lt

from model.errors import UnorderedHistoryError


@dataclass(frozen=True, slots=True)
class Event:
    """One interaction of a user with an item.

    Attributes:
        item_id: external id of the item.
        at: epoch microseconds, UTC.
        action: the kind of interaction ("purchase", "rating"); None if unknown.
    """

    item_id: str
    at: int
    action: str | None = None


@dataclass(frozen=True, slots=True)
class Query:
    """A history and the query time to recommend for.

    Attributes:
        history: events up to the query time, each once, in the order of `sort_events`.
        query_time: the instant to predict for, epoch microseconds, UTC.
        user_id: the user, if known.
        query_time_withheld: whether to withhold the query time from the model, which then uses only
            the order and times of the events; `query_time` still bounds which events may be used.

    Raises:
        UnorderedHistoryError: if events are out of order, repeated, or later than the query time.
    """

    history: tuple[Event, ...]
    query_time: int
    user_id: str | None = None
    query_time_withheld: bool = False

    def __post_init__(self) -> None:
        # The most frequent case first: a sweep checks a thousand events at 500 instants.
        pairs = () if _ascends(self.history) else zip(self.history, self.history[1:], strict=False)
        for earlier, later in pairs:
            if sort_key(earlier) >= sort_key(later):
                raise UnorderedHistoryError(
                    "events must be oldest first, those of one instant by item and action, and "
                    f"each once, but {later.item_id!r} at {later.at} follows "
                    f"{earlier.item_id!r} at {earlier.at}; build the query with Query.as_of"
                )
        if self.history and self.history[-1].at > self.query_time:
            raise UnorderedHistoryError(
                f"events must not be later than the query time {self.query_time}, but the last is "
                f"at {self.history[-1].at}; build the query with Query.as_of to drop them"
            )

    @classmethod
    def as_of(
        cls,
        events: Iterable[Event],
        query_time: int,
        *,
        user_id: str | None = None,
        query_time_withheld: bool = False,
    ) -> "Query":
        """Build the query as of `query_time`: sort the events, and drop later and repeated ones."""
        past = sort_events([event for event in events if event.at <= query_time])
        return cls(past, query_time, user_id, query_time_withheld)


def sort_events(events: Sequence[Event]) -> tuple[Event, ...]:
    """Sort events by time, those of one instant by item and then action, each once.

    Events of one instant are a set: they have no order, and senders list them in any. Training, the
    database and requests use this one order, so that every model reads the same history whichever
    way it arrived. Texts are compared by code point, None before them.
    """
    if _ascends(events):
        return tuple(events)
    by_position = {sort_key(event): event for event in events}
    return tuple(by_position[position] for position in sorted(by_position))


def _ascends(events: Sequence[Event]) -> bool:
    """Return whether every event is later than the one before it."""
    times = [event.at for event in events]
    return all(map(lt, times, times[1:]))


def sort_key(event: Event) -> tuple[int, str, bool, str]:
    """Return what `sort_events` sorts by; equal events have equal keys."""
    return event.at, event.item_id, event.action is not None, event.action or ""
