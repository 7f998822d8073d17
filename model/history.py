"""Events and queries as plain values, without tensors."""

from dataclasses import dataclass

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
        history: events up to the query time, oldest first; equal times keep their arrival order.
        query_time: the instant to predict for, epoch microseconds, UTC.
        user_id: the user, if known.
        query_time_withheld: whether to withhold the query time from the model, which then uses only
            the order and times of the events; `query_time` still bounds which events may be used.

    Raises:
        UnorderedHistoryError: if events are out of order or later than the query time.
    """

    history: tuple[Event, ...]
    query_time: int
    user_id: str | None = None
    query_time_withheld: bool = False

    def __post_init__(self) -> None:
        for earlier, later in zip(self.history, self.history[1:], strict=False):
            if later.at < earlier.at:
                raise UnorderedHistoryError(
                    f"events must be oldest first, but {later.item_id!r} at {later.at} follows "
                    f"{earlier.item_id!r} at {earlier.at}; sort by time, keeping arrival order"
                )
        if self.history and self.history[-1].at > self.query_time:
            raise UnorderedHistoryError(
                f"events must not be later than the query time {self.query_time}, but the last is "
                f"at {self.history[-1].at}; build the query with Query.as_of to drop them"
            )

    @classmethod
    def as_of(
        cls,
        events: list[Event] | tuple[Event, ...],
        query_time: int,
        *,
        user_id: str | None = None,
        query_time_withheld: bool = False,
    ) -> "Query":
        """Build the query as of `query_time`: sort the events and drop later ones."""
        past = sorted((event for event in events if event.at <= query_time), key=_get_instant)
        return cls(tuple(past), query_time, user_id, query_time_withheld)


def _get_instant(event: Event) -> int:
    return event.at
