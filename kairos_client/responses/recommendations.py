"""Responses with recommendations, rankings and sweeps."""

from kairos_client.responses.response import Response, UtcDatetime


class ScoreTerm(Response):
    """One term of the base of an item's score, compared with its mean over the catalog."""

    name: str
    """`encoder`, `popularity` or `calendar`."""
    effect: float
    """Natural logarithm of the factor by which the term raises the base: 0.7 doubles it, 0 is the
    average item."""


class ScorePart(Response):
    """One reason for an item."""

    name: str
    """`repeats`: the user's own earlier events of the item. `followers`: what followed the items of
    the user's last events, over all users. `base`: everything else."""
    share: float
    """The shares of an item sum to 1."""
    terms: tuple[ScoreTerm, ...] = ()
    """What raises or lowers the base, largest first; empty for the other parts."""


class EventContribution(Response):
    """What one event of the history contributes to a score."""

    item_id: str
    timestamp: UtcDatetime
    value: float
    title: str | None = None
    action: str | None = None


class Contribution(Response):
    """One of the numbers that add up to an item's score."""

    kind: str
    """`average`: the score of the average item. How this item differs from it: `state` (the user's
    history), `bias` (of the item), `calendar`, `popularity`, `repeats`, `followers` and
    `neighbours` (what similar users chose)."""
    value: float
    events: tuple[EventContribution, ...] = ()
    """Of `repeats` and `followers`: the events that it adds up from, oldest first."""


class ItemFacts(Response):
    """What was counted of an item, to write a sentence from."""

    times: int
    """Events of the item in the history that the model read, without those undone later."""
    trained_events: int
    """Events of the item by all users in the training data."""
    action: str | None = None
    """Of the events that `times` counts."""
    last_days: int | None = None
    """Whole days from the last of these events to the query time."""
    popularity_ratio: float | None = None
    """`recent_events` relative to `earlier_events`."""
    recent_events: int | None = None
    """Events of the item by all users in the last four weeks; None if they are not counted."""
    earlier_events: int | None = None
    """The same in the four weeks before."""
    follows_item_id: str | None = None
    """The other item of the history that contributes most to `followers`."""
    follows_title: str | None = None


class Reasons(Response):
    """Why an item is in the list."""

    sentence: str
    """One English sentence, from `facts` and the largest contributions."""
    contributions: tuple[Contribution, ...]
    """They add up to the score: `average` first, then from the largest to the smallest."""
    facts: ItemFacts


class RecommendedItem(Response):
    """One recommended item."""

    item_id: str
    score: float
    """Larger is better; comparable within one response only."""
    rank: int
    """1 for the best."""
    reason: str
    """`model`, or `popular` for an item that fills up the list."""
    title: str | None = None
    categories: tuple[str, ...] = ()
    parts: tuple[ScorePart, ...] | None = None
    """With `explain`: why this item, largest part first. None without, for a popular item, and for
    a model without a wide part."""
    reasons: Reasons | None = None
    """With `explain="reasons"`."""


class AttendedEvent(Response):
    """One event of the history with its attention weight."""

    item_id: str
    timestamp: UtcDatetime
    age_seconds: float
    """From the event to the query time."""
    weight: float
    """Attention weight at the query position, averaged over heads."""
    title: str | None = None
    action: str | None = None
    occlusion: float | None = None
    """Decrease of the score without this event or its basket, compared with the mean of all that
    was left out; None unless requested and measured."""
    categories: tuple[str, ...] = ()


class GroupIntensity(Response):
    """The model's intensity of events with items of one group at the query time."""

    group: str
    intensity: float
    """Events per day."""


class LeftOut(Response):
    """An event or a basket that was left out of the history."""

    events: tuple[int, ...]
    """Positions in `Attention.events`."""
    timestamp: UtcDatetime
    weight: float
    """The sum of their attention weights."""
    occlusion: float
    """Decrease of the score without them, compared with the mean of all that was left out."""


class Attention(Response):
    """Attention over the history: last block, query position, before dropout."""

    layer: str
    aggregation: str
    normalised: bool
    """Whether the weights sum to 1."""
    events: tuple[AttendedEvent, ...]
    """The events that the model used, oldest first."""
    of_item_id: str | None = None
    """For a model whose attention depends on the candidate: the item of these weights, the best."""
    intensities: tuple[GroupIntensity, ...] | None = None
    """For a self-modulating model: one per group of items."""
    heads: tuple[tuple[float, ...], ...] | None = None
    """With `explain="heads"`: the weights of `events` for each head."""
    occlusion_of_item_id: str | None = None
    """With `explain="occlusion"`: the item whose score is measured without each event."""
    faithfulness: float | None = None
    """With `explain="occlusion"`: Spearman's rank correlation of weight and occlusion over all that
    was left out; None where it says nothing."""
    faithfulness_note: str | None = None
    """What `faithfulness` says, `high`, `medium` or `reversed`, or why it is None, such as
    `too_few_left_out` or `not_significant`."""
    occlusion_unit: str | None = None
    """What was left out in turn, `event` or `basket`."""
    occlusion_mean: float | None = None
    """The mean decrease of the score, which `occlusion` is relative to."""
    left_out: tuple[LeftOut, ...] | None = None
    """What was left out in turn, oldest first."""


class RecommendationAnswer(Response):
    """Recommended items, with the data they are based on."""

    recommendation_id: str
    """Send it with the events that this recommendation leads to."""
    model_version: str
    query_time: UtcDatetime
    history_used: int
    """Number of events that the model used."""
    unknown_item_ids: tuple[str, ...]
    """Items of the history that are not in the model's catalog; their events are ignored."""
    items: tuple[RecommendedItem, ...]
    """Best first."""
    warnings: tuple[str, ...]
    """Stable codes, such as `history_truncated`."""
    fallback: str | None = None
    """`no_history`: the history has no usable event, so these are the most popular items.
    `popular`: the model returned too few items, and popular ones fill up the list."""
    attention: Attention | None = None
    """None unless requested, and for models without attention."""


class RankedItem(Response):
    """One of the given items."""

    item_id: str
    rank: int
    """1 for the best. Unknown items come last, in the order given."""
    reason: str
    """`model`, `popular` without a usable history, or `unknown` to the model."""
    score: float | None = None
    """Larger is better; comparable within one response only. None for an unknown item."""
    title: str | None = None
    categories: tuple[str, ...] = ()


class RankingAnswer(Response):
    """The given items, ranked, with the data the ranking is based on."""

    model_version: str
    query_time: UtcDatetime
    history_used: int
    """Number of events that the model used."""
    unknown_item_ids: tuple[str, ...]
    """Items of the history that are not in the model's catalog; their events are ignored."""
    items: tuple[RankedItem, ...]
    """Best first; each given item once."""
    warnings: tuple[str, ...]
    """Stable codes, such as `history_truncated`."""
    fallback: str | None = None
    """`no_history`: the history has no usable event, so the items are ranked by popularity."""


class SweptEvent(Response):
    """One event that the model used at any query time of a sweep."""

    item_id: str
    timestamp: UtcDatetime
    title: str | None = None
    action: str | None = None
    categories: tuple[str, ...] = ()


class AttentionAtInstant(Response):
    """Attention and recommendations at one query time."""

    query_time: UtcDatetime
    history_used: int
    """Number of events that the model used."""
    items: tuple[RecommendedItem, ...]
    """Best first."""
    warnings: tuple[str, ...]
    """Stable codes, such as `history_truncated`."""
    first_event: int
    """The index in `events` of the first event that the model read."""
    fallback: str | None = None
    """As in `RecommendationAnswer`."""
    weights: tuple[float | None, ...] | None = None
    """One per event of the sweep: 0 for an event outside the model's window, None for one after
    the query time. With `weights_of="read"` one per event that the model read, from
    `first_event` on. None as a whole for models without attention."""
    intensities: tuple[float, ...] | None = None
    """For a self-modulating model: events per day with items of each group of `groups`. None for
    other models, and before the first event."""


class AttentionAnswer(Response):
    """Attention over one history at several query times."""

    model_version: str
    layer: str
    aggregation: str
    normalised: bool
    """Whether the weights at one query time sum to 1."""
    unknown_item_ids: tuple[str, ...]
    """Items of the history that are not in the model's catalog; their events are ignored."""
    events: tuple[SweptEvent, ...]
    """The events used at any query time, oldest first."""
    instants: tuple[AttentionAtInstant, ...]
    """In the order of the requested query times."""
    warnings: tuple[str, ...]
    """Stable codes that apply to the whole sweep."""
    groups: tuple[str, ...] | None = None
    """Names of the item groups of `intensities`."""
