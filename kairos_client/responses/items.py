"""Responses about items."""

from typing import Any

from kairos_client.responses.response import Response, UtcDatetime


class StoredItems(Response):
    """The result of storing items."""

    stored: int
    """Number of items created or replaced."""


class Item(Response):
    """A stored item."""

    item_id: str
    categories: tuple[str, ...]
    updated_at: UtcDatetime
    title: str | None = None
    available_from: UtcDatetime | None = None
    available_until: UtcDatetime | None = None
    properties: dict[str, Any] | None = None


class ItemPage(Response):
    """One page of the stored items, by id in code point order."""

    items: tuple[Item, ...]
    next_cursor: str | None = None
    """The `cursor` of the next page; None on the last page."""


class SimilarItem(Response):
    """An item similar to another one."""

    item_id: str
    score: float
    """Cosine similarity of the two items' vectors."""
    rank: int
    """1 for the most similar."""
    title: str | None = None
    categories: tuple[str, ...] = ()


class SimilarItems(Response):
    """The items most similar to one item, by the vectors of a model."""

    item_id: str
    model_version: str
    items: tuple[SimilarItem, ...]
    """Most similar first; available items only."""


class EventCount(Response):
    """The number of events in one time bucket."""

    start: UtcDatetime
    """Start of the bucket: midnight UTC of a day, a Monday, or the first of a month."""
    events: int
    """Number of events of all actions."""


class ItemPopularity(Response):
    """The stored events of one item, counted over time."""

    item_id: str
    step: str
    """Length of a bucket: `day`, `week` or `month`."""
    events: int
    """Total number of events."""
    counts: tuple[EventCount, ...]
    """All buckets from the first event's to the last event's, including empty ones."""
    actions: dict[str, tuple[int, ...]]
    """Counts per action, aligned with `counts`; the most frequent actions only."""
    first_at: UtcDatetime | None = None
    """Time of the first counted event; None without events."""
    last_at: UtcDatetime | None = None
    """Time of the last counted event; None without events."""
    is_complete: bool = True
    """Whether all events are counted; otherwise only the newest 100,000."""
    warnings: tuple[str, ...] = ()
    """`implausible_times`: events before 1990 or in the future are not counted."""
