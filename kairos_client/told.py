"""What callers tell the service: events and items, checked where they are made."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import uuid4

from kairos_client.errors import InvalidError
from kairos_client.wire import given, instant


def _fresh_id() -> str:
    return str(uuid4())


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One user met one item at one instant.

    Attributes:
        action: what the user did, such as "view", "purchase" or "rating".
        timestamp: when it happened, with an offset from UTC.
        value: a number that belongs to the action, such as a rating or a price.
        event_id: what makes it one event however often it is sent. By default a random one, so the
            same object may be sent again, and is kept once; give your own (an order's number, a
            row's key) where a rerun of your program must not count twice either. A copy made by
            `dataclasses.replace` has the same id, and is the same event.
        recommendation_id: the recommendation that led to it.
        properties: anything else worth keeping, as JSON.

    Raises:
        InvalidError: if the timestamp is naive, or the value not finite.
    """

    user_id: str
    item_id: str
    action: str
    timestamp: datetime
    value: float | None = None
    event_id: str = field(default_factory=_fresh_id)
    recommendation_id: str | None = None
    properties: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        instant(self.timestamp)
        if self.value is not None and not math.isfinite(self.value):
            raise InvalidError(
                f"a value is a finite number, but got {self.value}; leave it out where there is "
                "none",
                code="value_not_finite",
            )

    def fields(self) -> dict[str, Any]:
        """The event as JSON has it."""
        return given(
            {
                "event_id": self.event_id,
                "user_id": self.user_id,
                "item_id": self.item_id,
                "action": self.action,
                "timestamp": self.timestamp,
                "value": self.value,
                "recommendation_id": self.recommendation_id,
                "properties": self.properties,
            }
        )


@dataclass(frozen=True, slots=True)
class PastEvent:
    """One event of a history that is sent along with a question, and not kept.

    Attributes:
        timestamp: when it happened, with an offset from UTC.
        action: what the user did, where the model was trained with actions.

    Raises:
        InvalidError: if the timestamp is naive.
    """

    item_id: str
    timestamp: datetime
    action: str | None = None

    def __post_init__(self) -> None:
        instant(self.timestamp)

    def fields(self) -> dict[str, Any]:
        """The event as JSON has it."""
        return given({"item_id": self.item_id, "timestamp": self.timestamp, "action": self.action})


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemDescription:
    """What is known of an item; stands in for whatever was known before.

    Attributes:
        title: a readable name.
        categories: the categories it belongs to.
        available_from: when it becomes available; None: it always was.
        available_until: when it ceases to be available; None: never.
        properties: anything else worth keeping, as JSON.

    Raises:
        InvalidError: if an instant is naive.
    """

    item_id: str
    title: str | None = None
    categories: tuple[str, ...] = ()
    available_from: datetime | None = None
    available_until: datetime | None = None
    properties: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        for at in (self.available_from, self.available_until):
            if at is not None:
                instant(at)

    def fields(self) -> dict[str, Any]:
        """The description as JSON has it."""
        return given(
            {
                "item_id": self.item_id,
                "title": self.title,
                "categories": self.categories,
                "available_from": self.available_from,
                "available_until": self.available_until,
                "properties": self.properties,
            }
        )


def fields_of(
    facts: Iterable[Event | PastEvent | ItemDescription] | None,
) -> list[dict[str, Any]] | None:
    """Facts as JSON has them; None for none given."""
    return None if facts is None else [fact.fields() for fact in facts]
