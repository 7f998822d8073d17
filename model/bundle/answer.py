"""What a bundle is asked beside the query itself, and what it answers."""

from dataclasses import dataclass
from typing import Literal

from model.history import Event

Reason = Literal["model", "popular"]
Fallback = Literal["popular", "no_history"]


@dataclass(frozen=True, slots=True)
class Constraints:
    """Which items may be answered, and how many.

    Attributes:
        n: items wanted.
        exclude_seen: leave out what the history holds.
        exclude: leave these out as well.
        include: if given, only these may be answered.
        strict: rather answer fewer items than fill up from popularity.
    """

    n: int = 10
    exclude_seen: bool = True
    exclude: frozenset[str] = frozenset()
    include: frozenset[str] | None = None
    strict: bool = False


@dataclass(frozen=True, slots=True)
class ScoredItem:
    """One recommended item.

    Attributes:
        score: larger is better; comparable within one answer and one reason only. Of a popular
            item, its events in the last seven days of the training data.
        reason: "model", or "popular" where popularity filled in.
    """

    item_id: str
    title: str | None
    categories: tuple[str, ...]
    score: float
    reason: Reason


@dataclass(frozen=True, slots=True)
class AttentionOverHistory:
    """What the model weighted: the last block's weights from the query position, before dropout.

    Attributes:
        events: the events the model read, oldest first.
        weights: mean over heads, one per event.
        heads: per head, one weight per event.
        normalised: whether the weights of a head sum to one.
        of_item_id: the item the weights are about, where they differ from item to item: the best.
        intensities: per group of items, by name: how likely the model finds one per day at the
            query time; None where it does not say.
    """

    events: tuple[Event, ...]
    weights: tuple[float, ...]
    heads: tuple[tuple[float, ...], ...]
    normalised: bool
    of_item_id: str | None = None
    intensities: tuple[tuple[str, float], ...] | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """The items for one query, and how they came about.

    Attributes:
        items: best first.
        history_used: events the model read.
        unknown_item_ids: items of the history the catalogue lacks; they were skipped.
        fallback: "no_history" where nothing of the history could be used, "popular" where
            popularity filled up what the constraints had left; None where the model answered.
        attention: None where it was not asked for, or where there is none to give.
        warnings: stable codes, "beyond_training_window", "history_truncated" or
            "attention_unavailable" (asked for, but the model does not attend).
    """

    items: tuple[ScoredItem, ...]
    history_used: int
    unknown_item_ids: tuple[str, ...]
    fallback: Fallback | None
    attention: AttentionOverHistory | None
    warnings: tuple[str, ...]
