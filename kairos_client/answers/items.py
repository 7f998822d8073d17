"""Items, as the service has them."""

from typing import Any

from kairos_client.answers.answer import Answer, Moment


class StoredItems(Answer):
    """What became of descriptions of items."""

    stored: int
    """Items created or replaced."""


class Item(Answer):
    """A stored item."""

    item_id: str
    categories: tuple[str, ...]
    updated_at: Moment
    title: str | None = None
    available_from: Moment | None = None
    available_until: Moment | None = None
    properties: dict[str, Any] | None = None


class ItemPage(Answer):
    """Some of the stored items, by id in code point order."""

    items: tuple[Item, ...]
    next_cursor: str | None = None
    """Give it as `cursor` for the next page; None: this is the last."""


class SimilarItem(Answer):
    """An item that is like another one."""

    item_id: str
    score: float
    """The cosine of the angle between the two items' vectors: 1 for the same direction."""
    rank: int
    """1 for the most alike."""
    title: str | None = None
    categories: tuple[str, ...] = ()


class SimilarItems(Answer):
    """What is like one item, as a model has learned it."""

    item_id: str
    model_version: str
    items: tuple[SimilarItem, ...]
    """The most alike first; only such as are available now."""


class EventCount(Answer):
    """How many events one bucket of time has."""

    start: Moment
    """When the bucket begins: midnight UTC of a day, a Monday, or the first of a month."""
    events: int
    """How many, of whatever action."""


class ItemPopularity(Answer):
    """The stored events of one item over time."""

    item_id: str
    step: str
    """How long a bucket is: `day`, `week` or `month`."""
    events: int
    """How many events were counted."""
    counts: tuple[EventCount, ...]
    """Every bucket from that of the first event to that of the last, those without events too."""
    actions: dict[str, tuple[int, ...]]
    """The events of each action, bucket by bucket as in `counts`; of the most frequent ones."""
    first_at: Moment | None = None
    """When the first event counted happened; None where there is none."""
    last_at: Moment | None = None
    """When the last event counted happened; None where there is none."""
