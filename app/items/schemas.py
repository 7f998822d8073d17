"""What callers say of items, and what they are told."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import ConfigDict, Field, StringConstraints

from app.http.properties import Properties
from app.http.types import RESPONSE_CONFIG, Id, Instant, RequestModel, Rfc3339
from app.items.calendar import Step

MAX_ITEMS = 1000

_NO_NUL = r"^[^\x00]*$"
Title = Annotated[str, StringConstraints(max_length=1024, pattern=_NO_NUL)]


class ItemDescription(RequestModel):
    """What is known of an item; stands in for whatever was known before."""

    item_id: Id
    """The item."""
    title: Title | None = None
    """A readable name."""
    categories: list[Id] = Field(default=[], max_length=100)
    """The categories it belongs to."""
    available_from: Instant | None = None
    """When it becomes available; null: it always was."""
    available_until: Instant | None = None
    """When it ceases to be available; null: never."""
    properties: Properties | None = None
    """Anything else worth keeping."""


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
    """Of several with the same id the last wins."""


@dataclass(frozen=True, slots=True)
class StoredItems:
    """What became of a batch."""

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
    """Some of the stored items, by id in code point order."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    items: tuple[Item, ...]
    next_cursor: str | None
    """Send it as `cursor` for the next page; null: this is the last."""


@dataclass(frozen=True, slots=True)
class SimilarItem:
    """An item that is like another one."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    item_id: str
    score: float
    """The cosine of the angle between the two items' vectors: 1 for the same direction."""
    rank: int
    """1 for the most alike."""
    title: str | None
    categories: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SimilarItems:
    """What is like one item, as a model has learned it."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    item_id: str
    model_version: str
    items: tuple[SimilarItem, ...]
    """The most alike first; only such as are available now."""


@dataclass(frozen=True, slots=True)
class EventCount:
    """How many events one bucket of time has."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    start: Rfc3339
    """When the bucket begins: midnight UTC of a day, a Monday, or the first of a month."""
    events: int
    """How many, of whatever action."""


@dataclass(frozen=True, slots=True)
class ItemPopularity:
    """The stored events of one item over time."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    item_id: str
    step: Step
    """How long a bucket is."""
    first_at: Rfc3339 | None
    """When the first event counted happened; null where there is none."""
    last_at: Rfc3339 | None
    """When the last event counted happened; null where there is none."""
    events: int
    """How many events were counted."""
    counts: Annotated[tuple[EventCount, ...], Field(max_length=1100)]
    """Every bucket from that of the first event to that of the last, those without events too."""
    actions: Annotated[dict[str, tuple[int, ...]], Field(max_length=20)]
    """The events of each action, bucket by bucket as in `counts`; of the 20 most frequent ones."""
