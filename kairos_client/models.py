"""Data that a caller sends: events and item descriptions, validated on construction."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import uuid4

from kairos_client.encoding import format_instant, to_json_fields
from kairos_client.errors import InvalidError


def _generate_id() -> str:
    return str(uuid4())


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One interaction of a user with an item.

    Attributes:
        action: what the user did, such as "view", "purchase" or "rating".
        timestamp: when it happened, with an offset from UTC.
        value: a number that belongs to the action, such as a rating or a price.
        event_id: the idempotency key: the service stores one event per id. Random by default, so
            the same object can be sent repeatedly; set it (an order number, a row's primary key)
            where a rerun of the program must not store the event again. A copy made by
            `dataclasses.replace` keeps the id and is the same event.
        recommendation_id: the recommendation that led to the event.
        properties: further data to store, as JSON.

    Raises:
        InvalidError: if the timestamp is naive, or the value not finite.
    """

    user_id: str
    item_id: str
    action: str
    timestamp: datetime
    value: float | None = None
    event_id: str = field(default_factory=_generate_id)
    recommendation_id: str | None = None
    properties: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        format_instant(self.timestamp)
        if self.value is not None and not math.isfinite(self.value):
            raise InvalidError(
                f"a value is a finite number, but got {self.value}; leave it out where there is "
                "none",
                code="value_not_finite",
            )

    def to_json(self) -> dict[str, Any]:
        """Convert the event to a JSON object."""
        return to_json_fields(
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
    """One event of a history that is sent with a request and not stored.

    Attributes:
        timestamp: when it happened, with an offset from UTC.
        action: what the user did, for models trained with actions.

    Raises:
        InvalidError: if the timestamp is naive.
    """

    item_id: str
    timestamp: datetime
    action: str | None = None

    def __post_init__(self) -> None:
        format_instant(self.timestamp)

    def to_json(self) -> dict[str, Any]:
        """Convert the event to a JSON object."""
        return to_json_fields(
            {"item_id": self.item_id, "timestamp": self.timestamp, "action": self.action}
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemDescription:
    """The data to store of an item; replaces what was stored before.

    Attributes:
        title: a readable name.
        categories: the categories it belongs to.
        available_from: the item is not recommended before this instant; None: no lower bound.
        available_until: the item is not recommended from this instant on; None: no upper bound.
        properties: further data to store, as JSON.

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
                format_instant(at)

    def to_json(self) -> dict[str, Any]:
        """Convert the description to a JSON object."""
        return to_json_fields(
            {
                "item_id": self.item_id,
                "title": self.title,
                "categories": self.categories,
                "available_from": self.available_from,
                "available_until": self.available_until,
                "properties": self.properties,
            }
        )


def to_json_objects(
    values: Iterable[Event | PastEvent | ItemDescription] | None,
) -> list[dict[str, Any]] | None:
    """Convert the values to JSON objects; None for None."""
    return None if values is None else [value.to_json() for value in values]
