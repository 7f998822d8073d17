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
    """Decrease of the score without this event; None unless requested and measured."""
    categories: tuple[str, ...] = ()


class GroupIntensity(Response):
    """The model's intensity of events with items of one group at the query time."""

    group: str
    intensity: float
    """Events per day."""


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
    """With `explain="occlusion"`: Spearman's rank correlation of weight and occlusion over the
    occluded events; None where it is not defined."""


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
    fallback: str | None = None
    """As in `RecommendationAnswer`."""
    weights: tuple[float | None, ...] | None = None
    """One per event of the sweep: 0 for an event outside the model's window, None for one after
    the query time. None as a whole for models without attention."""
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
