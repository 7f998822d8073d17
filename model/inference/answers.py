"""Constraints on a recommendation, and the types that inference returns."""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from model.history import Event

Reason = Literal["model", "popular"]
Fallback = Literal["popular", "no_history"]
PartName = Literal["base", "repeats", "followers"]
TermName = Literal["encoder", "popularity", "calendar"]
ContributionKind = Literal[
    "average", "state", "bias", "calendar", "popularity", "repeats", "followers", "neighbours"
]
OcclusionUnit = Literal["event", "basket"]
FaithfulnessNote = Literal[
    "high",
    "medium",
    "reversed",
    "too_few_left_out",
    "equal_weights",
    "changes_within_noise",
    "not_significant",
]


@dataclass(frozen=True, slots=True)
class Constraints:
    """Which items may be recommended, and how many.

    Attributes:
        n: the most items.
        exclude_seen: leave out the items of the history.
        exclude: leave these items out as well.
        include: if given, only these items may be recommended.
        strict: return fewer items rather than fill up with popular ones.
        diversity: 0 for the best items by score; towards 1 for items that are less alike.
        allowed: per catalog row (row 0 is padding), whether it may be recommended; None: any.
    """

    n: int = 10
    exclude_seen: bool = True
    exclude: frozenset[str] = frozenset()
    include: frozenset[str] | None = None
    strict: bool = False
    diversity: float = 0.0
    allowed: NDArray[np.bool_] | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ScoreTerm:
    """One term of an item's base, compared with its mean over the catalog.

    Attributes:
        name: "encoder" for what the user vector and the item's bias give, "popularity" for how
            often all users chose the item lately, "calendar" for the phase of the query time.
        effect: natural logarithm of the factor by which the term raises the base's weight.
    """

    name: TermName
    effect: float


@dataclass(frozen=True, slots=True)
class ScorePart:
    """One of the alternatives whose weights add up to an item's.

    Attributes:
        name: "base" for what every item of the catalog has, "repeats" for the user's own events of
            the item, "followers" for what followed the user's last events in all histories.
        share: of the item's weight, the exponential of its score. The shares of an item sum to 1.
        terms: of the base, largest first; empty for the others.
    """

    name: PartName
    share: float
    terms: tuple[ScoreTerm, ...] = ()


@dataclass(frozen=True, slots=True)
class EventContribution:
    """What one event of the history contributes to a score.

    Attributes:
        row: of the event's item in the catalog of the model.
    """

    event: Event
    row: int
    value: float


@dataclass(frozen=True, slots=True)
class Contribution:
    """One of the numbers that add up to a score.

    Attributes:
        kind: "average" for the score of the average item, which is the same for every item; how far
            this item's differs from it because of "state" (the user vector), "bias" (of the item),
            "calendar" and "popularity"; "repeats" for the user's own events of the item,
            "followers" for what followed the user's last events and "neighbours" for the items of
            similar users.
        events: what each event adds, of "repeats" and "followers"; in the order of the history.
    """

    kind: ContributionKind
    value: float
    events: tuple[EventContribution, ...] = ()


@dataclass(frozen=True, slots=True)
class ItemFacts:
    """What was counted of an item, in this history and of all users.

    Attributes:
        action: of the events that `times` counts; None without any, or where it is unknown.
        times: events of the item with this action in the history that the model read, without those
            that a later one undoes.
        last_days: whole days from the last of them to the query time.
        recent_events: of all users, in the four weeks up to the last whole span of time that was
            counted by the query time; None where the counts do not reach so far, or back.
        earlier_events: of all users, in the four weeks before those.
        trained_events: of all users, in the training data.
        follows_row: the row of the other item of the history that contributes most by what followed
            it; None where none does.
    """

    action: str | None
    times: int
    last_days: int | None
    recent_events: int | None
    earlier_events: int | None
    trained_events: int
    follows_row: int | None

    @property
    def popularity_ratio(self) -> float | None:
        """The recent events relative to the earlier ones; None without any earlier ones."""
        if self.recent_events is None or not self.earlier_events:
            return None
        return self.recent_events / self.earlier_events


@dataclass(frozen=True, slots=True)
class Reasons:
    """Why an item is in a list.

    Attributes:
        contributions: they add up to the score; "average" first, then from the largest to the
            smallest.
    """

    contributions: tuple[Contribution, ...]
    facts: ItemFacts


@dataclass(frozen=True, slots=True)
class ScoredItem:
    """One recommended item.

    Attributes:
        row: its row in the catalog of the model.
        score: larger is better; comparable within one recommendation and one reason only. Of a
            popular item, its events in the last seven days of the training data.
        reason: "model", or "popular" where popularity filled in.
        parts: of the score, largest first; None where they were not requested, popularity filled
            in, or the model has no wide part.
        reasons: None where they were not requested.
    """

    row: int
    item_id: str
    score: float
    reason: Reason
    parts: tuple[ScorePart, ...] | None = None
    reasons: Reasons | None = None


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Events that were left out of a history together, and what that changed.

    Attributes:
        indices: of the events in the history, ascending.
        weight: the sum of their attention weights.
        change: how much lower the score is without them, less the mean of this over all that was
            left out in turn.
    """

    indices: tuple[int, ...]
    weight: float
    change: float


@dataclass(frozen=True, slots=True)
class Occlusion:
    """How the score of one item changes as events or baskets of the history are left out in turn.

    To leave anything out changes every score, as the history is then shorter. Changes are therefore
    compared with their mean.

    Attributes:
        of_item_id: the item.
        unit: whether single events were left out, or all events of one instant.
        left_out: in the order of the history: the units with the most attention. Empty where the
            history has a single one.
        mean_change: how much lower the score is without one of them, on average; None without any.
        faithfulness: Spearman's rank correlation of the attention weights with the changes; None
            where it is undefined, or chance gives as much.
        note: what the correlation says, or why there is none.
    """

    of_item_id: str
    unit: OcclusionUnit
    left_out: tuple[LeftOut, ...]
    mean_change: float | None
    faithfulness: float | None
    note: FaithfulnessNote


@dataclass(frozen=True, slots=True)
class AttentionOverHistory:
    """Attention weights of the last block from the query position, before dropout.

    Attributes:
        events: the events that the model read, oldest first.
        rows: their rows in the catalog of the model.
        weights: mean over heads, one per event.
        heads: per head, one weight per event.
        normalised: whether the weights of a head sum to one.
        of_item_id: the recommended item that the weights are for, the best one; None where they
            are the same for every item.
        intensities: per group of items, by name: its intensity at the query time, per day; None
            where the model has none.
        occlusion: None where it was not requested.
    """

    events: tuple[Event, ...]
    rows: tuple[int, ...]
    weights: tuple[float, ...]
    heads: tuple[tuple[float, ...], ...]
    normalised: bool
    of_item_id: str | None = None
    intensities: tuple[tuple[str, float], ...] | None = None
    occlusion: Occlusion | None = None


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The items for one query.

    Attributes:
        items: best first.
        history_used: events that the model read.
        unknown_item_ids: items of the history that the catalog lacks; they were skipped.
        fallback: "no_history" where the history has no known event, "popular" where popular items
            filled up what the constraints left; None where every item is the model's.
        attention: None where it was not requested, or the model does not attend.
        warnings: stable codes, "beyond_training_window", "history_truncated",
            "attention_unavailable" (requested, but the model does not attend) or
            "diversity_unavailable" (requested, but the model learns no item vectors).
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
        items: best first: those of the given items that the catalog holds.
        history_used: events that the model read.
        unknown_item_ids: items of the history that the catalog lacks; they were skipped.
        unranked_item_ids: given items that the catalog lacks, in the order they were given.
        fallback: "no_history" where popularity ranked them, because no event is known.
        warnings: as of a `Recommendation`.
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
        history_used: events that the model read: those of the sweep up to the instant, without
            the oldest where there are more than the model reads.
        first_event: index in the sweep's events of the first that the model read.
        weights: mean over heads, one per event that the model read, from `first_event` on; None
            where the model does not attend, or no event precedes the instant.
        intensities: one per group of the sweep, as of an `AttentionOverHistory`; None where the
            model has none, or no event precedes the instant.
        items: best first.
        fallback: as of a `Recommendation`.
        warnings: of this instant alone: "beyond_training_window", "history_truncated".
    """

    query_time: int
    history_used: int
    first_event: int
    weights: tuple[float, ...] | None
    intensities: tuple[float, ...] | None
    items: tuple[ScoredItem, ...]
    fallback: Fallback | None
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Sweep:
    """One history at many query times.

    Attributes:
        events: the events read at any of the instants, oldest first.
        rows: their rows in the catalog of the model.
        instants: in the order of the requested query times.
        unknown_item_ids: items of the history that the catalog lacks; they were skipped.
        normalised: whether the weights of one instant sum to one.
        groups: the names of the groups of items that `intensities` are of; None where no instant
            has any.
        warnings: those of any instant.
    """

    events: tuple[Event, ...]
    rows: tuple[int, ...]
    instants: tuple[SweptInstant, ...]
    unknown_item_ids: tuple[str, ...]
    normalised: bool
    groups: tuple[str, ...] | None
    warnings: tuple[str, ...]
