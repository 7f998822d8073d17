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
