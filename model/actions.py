"""What the names of actions say, where they are in English: purchases, and what undoes others."""

import re

_UNDOING = re.compile(r"cancel|return|refund|undo|remove|unlike|dislike|delete", re.IGNORECASE)
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
_NOT_A_LETTER = re.compile(r"[^a-z]+")


def is_undoing(action: str | None) -> bool:
    """Return whether an action seems to undo another, such as a cancellation."""
    return action is not None and _UNDOING.search(action) is not None


def is_purchase(action: str | None) -> bool:
    """Return whether an action seems to be a purchase."""
    if action is None or is_undoing(action):
        return False
    return not _PURCHASES.isdisjoint(split_words(action))


def split_words(action: str) -> frozenset[str]:
    """Split the name of an action into its words, in lower case."""
    return frozenset(_NOT_A_LETTER.split(action.lower()))
