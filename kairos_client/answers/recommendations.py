"""Recommendations, rankings and sweeps, and what they rest on."""

from kairos_client.answers.answer import Answer, Moment


class RecommendedItem(Answer):
    """One recommended item."""

    item_id: str
    score: float
    """Larger is better; comparable within one answer only."""
    rank: int
    """1 for the best."""
    reason: str
    """`model`, or `popular`: it fills in."""
    title: str | None = None
    categories: tuple[str, ...] = ()


class AttendedEvent(Answer):
    """One event the model read, and how much it counted."""

    item_id: str
    timestamp: Moment
    age_seconds: float
    """Time from the event to the query time."""
    weight: float
    """The attention from the query position, averaged over heads."""
    title: str | None = None
    action: str | None = None
    occlusion: float | None = None
    """How much lower the score is without this event, where that was asked for and measured."""
    categories: tuple[str, ...] = ()


class GroupIntensity(Answer):
    """How likely the model finds an item of a group at the query time."""

    group: str
    intensity: float
    """Per day."""


class Attention(Answer):
    """Attention over the history: of the last block, from the query position, before dropout."""

    layer: str
    aggregation: str
    normalised: bool
    """Whether the weights sum to 1."""
    events: tuple[AttendedEvent, ...]
    """The events used, oldest first."""
    of_item_id: str | None = None
    """The item the weights are about, for a model that attends differently for each: the best."""
    intensities: tuple[GroupIntensity, ...] | None = None
    """For a self-modulating model, per group of items."""
    heads: tuple[tuple[float, ...], ...] | None = None
    """With `explain="heads"`: for each head the weights of `events`."""
    occlusion_of_item_id: str | None = None
    """With `explain="occlusion"`: the item whose score the events were left out of."""
    faithfulness: float | None = None
    """With `explain="occlusion"`: Spearman's rank correlation of weight and occlusion over the
    events that were left out; None where there is no order to compare."""


class RecommendationAnswer(Answer):
    """The items, and an account of what they rest on."""

    recommendation_id: str
    """Send it back with the events this answer leads to."""
    model_version: str
    query_time: Moment
    history_used: int
    """How many events the model read."""
    unknown_item_ids: tuple[str, ...]
    """Items of the history that the model does not know; it read the rest."""
    items: tuple[RecommendedItem, ...]
    """Best first."""
    warnings: tuple[str, ...]
    """Stable codes, such as `history_truncated`."""
    fallback: str | None = None
    """`no_history`: nothing usable in the history, so these are the popular items. `popular`: the
    model's items were too few, and popular ones fill up."""
    attention: Attention | None = None
    """If asked for, and the model attends at all."""


class RankedItem(Answer):
    """One of the given items."""

    item_id: str
    rank: int
    """1 for the best. Unknown items come last, in the order they were given."""
    reason: str
    """`model`, `popular` for want of a usable history, or `unknown` to the model."""
    score: float | None = None
    """Larger is better; comparable within one answer only. None for an unknown item."""
    title: str | None = None
    categories: tuple[str, ...] = ()


class RankingAnswer(Answer):
    """The given items in order, and an account of what the order rests on."""

    model_version: str
    query_time: Moment
    history_used: int
    """How many events the model read."""
    unknown_item_ids: tuple[str, ...]
    """Items of the history that the model does not know; it read the rest."""
    items: tuple[RankedItem, ...]
    """Best first: every given item, once."""
    warnings: tuple[str, ...]
    """Stable codes, such as `history_truncated`."""
    fallback: str | None = None
    """`no_history`: nothing usable in the history, so popularity ranked the items."""


class SweptEvent(Answer):
    """One event that the model read at any of the instants."""

    item_id: str
    timestamp: Moment
    title: str | None = None
    action: str | None = None
    categories: tuple[str, ...] = ()


class AttentionAtInstant(Answer):
    """What the model attended to at one instant, and what it recommended."""

    query_time: Moment
    history_used: int
    """How many of the events the model read."""
    items: tuple[RecommendedItem, ...]
    """Best first."""
    warnings: tuple[str, ...]
    """Stable codes, such as `history_truncated`."""
    fallback: str | None = None
    """As of a recommendation."""
    weights: tuple[float | None, ...] | None = None
    """One per event of the sweep: 0 for one the model no longer read, None for one that had not
    happened yet. None altogether if the model does not attend."""
    intensities: tuple[float, ...] | None = None
    """One per group of `groups`: how likely a self-modulating model finds an item of the group at
    the instant, per day; None for other models, and before the first event."""


class AttentionAnswer(Answer):
    """Attention over one history while the clock runs."""

    model_version: str
    layer: str
    aggregation: str
    normalised: bool
    """Whether the weights of one instant sum to 1."""
    unknown_item_ids: tuple[str, ...]
    """Items of the history that the model does not know; it read the rest."""
    events: tuple[SweptEvent, ...]
    """The events read at any of the instants, oldest first."""
    instants: tuple[AttentionAtInstant, ...]
    """In the order they were asked about."""
    warnings: tuple[str, ...]
    """Of the sweep as a whole, stable codes."""
    groups: tuple[str, ...] | None = None
    """The groups of items that `intensities` are of, by name."""
