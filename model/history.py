"""What happened, and what is asked: plain values without tensors."""

from dataclasses import dataclass

from model.errors import UnorderedHistoryError


@dataclass(frozen=True, slots=True)
class Event:
    """One item met by one user at one instant.

    Attributes:
        item_id: the item, by its outside name.
        at: epoch microseconds, UTC.
        action: what the user did with it ("purchase", "rating"); None where nobody said.
    """

    item_id: str
    at: int
    action: str | None = None


@dataclass(frozen=True, slots=True)
class Query:
    """What a recommender is asked: given this history, what should come next at this instant?

    Attributes:
        history: events up to the query time, oldest first; equal times keep their arrival order.
        query_time: the instant the answer is for, epoch microseconds, UTC.
        user_id: who asks, where known.
        query_time_withheld: if true the model is not told the query time, only the order and times
            of the events; `query_time` then still bounds which events may be used.

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
        """The query over what had happened by `query_time`: sorts, and leaves later events out."""
        past = sorted((event for event in events if event.at <= query_time), key=_instant)
        return cls(tuple(past), query_time, user_id, query_time_withheld)


def _instant(event: Event) -> int:
    return event.at
