"""What the names of actions say, where they are in English: purchases, and what undoes others."""

import re
from collections.abc import Collection

_UNDOING = re.compile(
    r"(?i:cancel|return|refund|undo|remove|dislike|delete|revoke|chargeback)|"
    # At the start of a word, for "understand" and "sunlike" undo nothing.
    r"((?<![a-zA-Z])[uU]|(?<=[a-z])U)[nN]"
    r"(?i:bookmark|fav|follow|heart|install|like|pin|save|star|subscri|vote|watch)"
)
_PURCHASES = {
    "bought",
    "buy",
    "buys",
    "order",
    "ordered",
    "orders",
    "purchase",
    "purchased",
    "sale",
}
_NEUTRAL = {
    *("a", "an", "by", "event", "of", "online", "store", "the", "user"),
    *("complete", "completed", "confirmed", "created", "first", "new", "now", "paid"),
    *("place", "placed", "success", "successful"),
    *("album", "article", "book", "item", "items", "movie", "product", "products", "song", "track"),
    "video",
}
"""Words beside that of an act which do not change what it is."""
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[^\W\d_a-zA-Z]+")


def is_undoing(action: str | None) -> bool:
    """Return whether an action seems to undo another, such as a cancellation."""
    return action is not None and _UNDOING.search(action) is not None


def is_purchase(action: str | None) -> bool:
    """Return whether an action seems to be a purchase."""
    return names_act(action, _PURCHASES)


def names_act(action: str | None, names: Collection[str], *, beside: Collection[str] = ()) -> bool:
    """Return whether an action is called by one of some names of an act, and by nothing else.

    An action such as "abandoned_purchase", "buy_later" or "never_read" is not: what its other words
    change is not known.

    Args:
        names: in lower case.
        beside: further words that may stand beside them.
    """
    if action is None or is_undoing(action):
        return False
    words = {word.lower() for word in _WORD.findall(action)} - _NEUTRAL - {*beside}
    return bool(words) and words <= {*names}
