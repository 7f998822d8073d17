"""What a bundle is asked beside the query itself, and what it answers."""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

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
        diversity: 0 for the best items by score; towards 1 for items ever less like each other.
        allowed: per catalogue row (row 0 is padding), whether it may be answered; None: every one.
    """

    n: int = 10
    exclude_seen: bool = True
    exclude: frozenset[str] = frozenset()
    include: frozenset[str] | None = None
    strict: bool = False
    diversity: float = 0.0
    allowed: NDArray[np.bool_] | None = field(default=None, compare=False, repr=False)


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
class Occlusion:
    """What the score of one item owes to single events of the history.

    Attributes:
        of_item_id: the item.
        changes: per event, how much lower the score is without it; None for an event that was not
            left out, because others had more attention or because it is the only one.
        faithfulness: Spearman's rank correlation of the weights with the changes; None where there
            is no order to compare.
    """

    of_item_id: str
    changes: tuple[float | None, ...]
    faithfulness: float | None


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
        occlusion: what the score owes to single events, where that was asked for.
    """

    events: tuple[Event, ...]
    weights: tuple[float, ...]
    heads: tuple[tuple[float, ...], ...]
    normalised: bool
    of_item_id: str | None = None
    intensities: tuple[tuple[str, float], ...] | None = None
    occlusion: Occlusion | None = None


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
        warnings: stable codes, "beyond_training_window", "history_truncated",
            "attention_unavailable" (asked for, but the model does not attend) or
            "diversity_unavailable" (asked for, but the model places no items in a space).
    """

    items: tuple[ScoredItem, ...]
    history_used: int
    unknown_item_ids: tuple[str, ...]
    fallback: Fallback | None
    attention: AttentionOverHistory | None
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RankedItems:
    """Given items in the model's order.

    Attributes:
        items: best first: those of the catalogue among the given ones.
        history_used: events the model read.
        unknown_item_ids: items of the history the catalogue lacks; they were skipped.
        unranked_item_ids: given items the catalogue lacks, in the order they were given.
        fallback: "no_history" where popularity ranked them, for want of a usable history.
        warnings: as of an `Answer`.
    """

    items: tuple[ScoredItem, ...]
    history_used: int
    unknown_item_ids: tuple[str, ...]
    unranked_item_ids: tuple[str, ...]
    fallback: Fallback | None
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SweptInstant:
    """One instant of a sweep.

    Attributes:
        query_time: the instant, epoch microseconds, UTC.
        history_used: events the model read; those of the sweep that had happened by then, but for
            the oldest where there are more than the model reads.
        weights: mean over heads, one per event of the sweep, 0 for those not read; None where the
            model does not attend, or nothing had happened yet.
        intensities: one per group of the sweep, as of an `AttentionOverHistory`; None where the
            model does not say, or nothing had happened yet.
        items: best first.
        fallback: as of an `Answer`.
        warnings: of this instant alone: "beyond_training_window", "history_truncated".
    """

    query_time: int
    history_used: int
    weights: tuple[float, ...] | None
    intensities: tuple[float, ...] | None
    items: tuple[ScoredItem, ...]
    fallback: Fallback | None
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Sweep:
    """One history asked about at many instants.

    Attributes:
        events: the events read at any of the instants, oldest first.
        instants: in the order they were asked about.
        unknown_item_ids: items of the history the catalogue lacks; they were skipped.
        normalised: whether the weights of one instant sum to one.
        groups: the names of the groups of items that `intensities` are of; None where no instant
            has any.
        warnings: those of any instant.
    """

    events: tuple[Event, ...]
    instants: tuple[SweptInstant, ...]
    unknown_item_ids: tuple[str, ...]
    normalised: bool
    groups: tuple[str, ...] | None
    warnings: tuple[str, ...]
