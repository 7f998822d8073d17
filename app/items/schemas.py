"""Requests and responses of /v1/items."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, ConfigDict, Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from app.http.properties import Properties
from app.http.types import RESPONSE_CONFIG, Id, Instant, RequestModel, Rfc3339

MAX_ITEMS = 1000

Step = Literal["day", "week", "month"]
"""The length of a bucket of time: weeks begin on Monday, months on their first day."""

_NO_NUL = r"^[^\x00]*$"
Title = Annotated[str, StringConstraints(max_length=1024, pattern=_NO_NUL)]


def _drop_repeats(categories: list[str]) -> list[str]:
    """Keep each category once, where it is first named."""
    return list(dict.fromkeys(categories))


Categories = Annotated[list[Id], Field(max_length=100), AfterValidator(_drop_repeats)]


class ItemDescription(RequestModel):
    """An item's description. It replaces the previous one as a whole."""

    item_id: Id
    """The item."""
    title: Title | None = None
    """A readable name."""
    categories: Categories = Field(default=[])
    """The categories it belongs to."""
    available_from: Instant | None = None
    """When it becomes available; null: it always was."""
    available_until: Instant | None = None
    """When it ceases to be available, not before `available_from`; null: never."""
    properties: Properties | None = None
    """Additional data, stored unchanged."""

    @model_validator(mode="after")
    def _require_order_of_availability(self) -> "ItemDescription":
        first, end = self.available_from, self.available_until
        if first is not None and end is not None and end < first:
            raise PydanticCustomError(
                "availability_ends_before_it_begins",
                "available_until must not be before available_from",
            )
        return self


class ItemBatch(RequestModel):
    """Items to create or replace."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "items": [
                        {"item_id": "50", "title": "Star Wars (1977)", "categories": ["Sci-Fi"]}
                    ]
                }
            ]
        }
    )

    items: Annotated[list[ItemDescription], Field(max_length=MAX_ITEMS)]
    """Of several items with the same id, the last is stored."""


@dataclass(frozen=True, slots=True)
class StoredItems:
    """The outcome of a batch."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    stored: int
    """Distinct items created or replaced."""


@dataclass(frozen=True, slots=True)
class Item:
    """A stored item."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    item_id: str
    title: str | None
    categories: list[str]
    available_from: Rfc3339 | None
    available_until: Rfc3339 | None
    properties: dict[str, Any] | None
    updated_at: Rfc3339


@dataclass(frozen=True, slots=True)
class ItemPage:
    """A page of the stored items, by id in code point order."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    items: tuple[Item, ...]
    next_cursor: str | None
    """Send it as `cursor` to get the next page; null on the last page."""


@dataclass(frozen=True, slots=True)
class SimilarItem:
    """An item that is similar to another one."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    item_id: str
    score: float
    """The cosine of the angle between the two items' vectors: 1 for the same direction."""
    rank: int
    """1 for the most similar."""
    title: str | None
    categories: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SimilarItems:
    """The items most similar to one item, by a model's item vectors."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    item_id: str
    model_version: str
    items: tuple[SimilarItem, ...]
    """The most similar first; only items that are available now."""


@dataclass(frozen=True, slots=True)
class EventCount:
    """The number of events in one bucket of time."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    start: Rfc3339
    """The start of the bucket: midnight UTC of a day, a Monday, or the first day of a month."""
    events: int
    """The number of events of all actions."""


@dataclass(frozen=True, slots=True)
class ItemPopularity:
    """The stored events of one item over time."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    item_id: str
    step: Step
    """The length of a bucket."""
    first_at: Rfc3339 | None
    """The instant of the first counted event; null if there is none."""
    last_at: Rfc3339 | None
    """The instant of the last counted event; null if there is none."""
    is_complete: bool
    """False if there are more than 100,000 events: the newest are counted, and `until` reaches the
    others."""
    events: int
    """The number of counted events."""
    counts: Annotated[tuple[EventCount, ...], Field(max_length=1100)]
    """Every bucket from the first event's to the last event's, including empty ones."""
    actions: Annotated[dict[str, tuple[int, ...]], Field(max_length=20)]
    """The events of each of the 20 most frequent actions, bucket by bucket as in `counts`."""
    warnings: tuple[str, ...] = ()
    """`implausible_times`: the item has events before 1990 or more than 300 seconds ahead of now,
    which are not counted without `since` or `until`."""
