"""Request and response of POST /v1/recommendations."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field

from app.histories.schemas import InstantRequest
from app.http.types import RESPONSE_CONFIG, Id, RequestModel, Rfc3339

ItemIds = Annotated[list[Id], Field(max_length=1000)]


class CategoryFilter(RequestModel):
    """A filter by category."""

    any: list[Id] = Field(default=[], max_length=100)
    """If not empty: only items of at least one of these categories."""
    none: list[Id] = Field(default=[], max_length=100)
    """No items of these categories."""


# Defaults are built, not copied as pydantic does: copying three takes as long as reading a history.
_ANY_CATEGORY = CategoryFilter()


def _build_empty() -> list[str]:
    # Not `list`, whose signature pydantic would parse from a text.
    return []


class RecommendationRequest(InstantRequest):
    """The history, the query time, and filters on the items."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "history": [
                        {"item_id": "50", "timestamp": "1997-12-04T15:30:00Z"},
                        {"item_id": "181", "timestamp": 881250000},
                    ],
                    "query_time": "1997-12-05T20:00:00+01:00",
                    "n": 5,
                    "explain": "attention",
                }
            ]
        }
    )

    n: int = Field(default=10, ge=1, le=500)
    """Maximum number of items."""
    exclude_seen: bool = True
    """Whether to leave out items of the history. For a stored history these are the items of the
    user's latest 10,000 events, although the model reads fewer."""
    exclude_item_ids: ItemIds = Field(
        default_factory=_build_empty, json_schema_extra={"default": []}
    )
    """Items to leave out."""
    include_item_ids: ItemIds = Field(
        default_factory=_build_empty, json_schema_extra={"default": []}
    )
    """If not empty: only these items."""
    categories: CategoryFilter = Field(
        default_factory=lambda: _ANY_CATEGORY,
        json_schema_extra={"default": _ANY_CATEGORY.model_dump()},
    )
    """A filter by category, as last stored for each item."""
    available_only: bool = True
    """Whether to leave out items that are not available at the query time."""
    diversity: float = Field(default=0.0, ge=0, le=1, allow_inf_nan=False)
    """0: the best items by score. Towards 1: items that are less similar to each other (maximal
    marginal relevance on the item vectors); ranks then follow that selection, not the scores."""
    strict: bool = False
    """Whether to return fewer than `n` items rather than fill up with popular ones."""
    shown: bool = True
    """Whether the items are shown to a user and recorded as an impression. False for a preview:
    nothing is recorded, and the shadow is not queried."""
    explain: Literal["none", "attention", "heads", "occlusion", "reasons"] = "none"
    """`attention`: the attention weight of each event, averaged over heads, and the parts of each
    item's score. `heads`: also weights per head. `occlusion`: also the score's change without each
    of the 20 most attended events. `reasons`: without attention, what each item's score adds up
    from, facts about the item, and a sentence."""
    explain_item_id: Id | None = None
    """With `explain` = `occlusion`: the item whose score is explained. Default: the best item."""
    occlusion_unit: Literal["event", "basket"] = "event"
    """With `explain` = `occlusion`: whether to leave out single events, or baskets: all events of
    one instant together."""


# A response holds dozens of these objects and of those of a sweep, so their classes are not frozen,
# which takes half of the time to make one, and have no slots, which orjson reads four times slower.


@dataclass
class ScoreTerm:
    """One term of the `base` of an item's score, compared with its mean over the catalog."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    name: Literal["encoder", "popularity", "calendar"]
    """`encoder`: how well the item fits the user's history at the query time. `popularity`: how
    often all users chose it lately. `calendar`: how well it fits the hour, weekday and season."""
    effect: float
    """Natural logarithm of the factor by which the term raises the base: 0.7 doubles it, 0 is the
    average item."""


@dataclass
class ScorePart:
    """One reason for an item. The model adds up alternatives: the base, which every item has, the
    user's repeats, and what usually follows the user's last events."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    name: Literal["base", "repeats", "followers"]
    """`repeats`: the user's own earlier events of the item. `followers`: what followed the items of
    the user's last events, over all users. `base`: everything else."""
    share: float
    """Share of the item's weight, the exponential of its score. The shares of an item sum to 1."""
    terms: tuple[ScoreTerm, ...]
    """What raises or lowers the base, largest first; empty for the other parts."""


@dataclass
class EventContribution:
    """What one event of the history contributes to a score."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    item_id: str
    title: str | None
    """The title of the item."""
    timestamp: Rfc3339
    action: str | None
    value: float


@dataclass
class Contribution:
    """One of the numbers that add up to an item's score."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    kind: Literal[
        "average", "state", "bias", "calendar", "popularity", "repeats", "followers", "neighbours"
    ]
    """`average`: the score of the average item, the same for every item; the others say how this
    item differs from it. `state`: how well it fits the user's history at the query time. `bias`:
    how often it was chosen in general. `calendar`: how well it fits the hour, weekday and season.
    `popularity`: how often all users chose it lately. `repeats`: the user's own events of the item.
    `followers`: what followed the items of the user's last events, over all users. `neighbours`:
    what similar users chose."""
    value: float
    events: tuple[EventContribution, ...]
    """Of `repeats` and `followers`: the events that it adds up from, oldest first. Empty for the
    others."""


@dataclass
class ItemFacts:
    """What was counted of an item, to write a sentence from."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    action: str | None
    """The action of the events that `times` counts: purchases, or else the most frequent one."""
    times: int
    """Events of the item with this action in the history that the model read. One that a later
    event undoes, such as a cancelled purchase, does not count."""
    last_days: int | None
    """Whole days from the last of these events to the query time."""
    popularity_ratio: float | None
    """`recent_events` relative to `earlier_events`."""
    recent_events: int | None
    """Events of the item by all users in the four weeks up to the query time, or up to the last
    whole span of time that was counted. Null if the model has no counts of these times."""
    earlier_events: int | None
    """The same in the four weeks before those."""
    trained_events: int
    """Events of the item by all users in the training data."""
    follows_item_id: str | None
    """The other item of the history that contributes most to `followers`."""
    follows_title: str | None


@dataclass
class Reasons:
    """Why an item is in the list."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    sentence: str
    """One English sentence, from `facts` and the largest contributions."""
    contributions: tuple[Contribution, ...]
    """They add up to `score`: `average` first, then from the largest to the smallest. Of an item
    that popularity filled in: its events in the last seven days, which are its score."""
    facts: ItemFacts


@dataclass
class RecommendedItem:
    """One recommended item."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    item_id: str
    score: float
    """Larger is better; comparable within one response only."""
    rank: int
    """1 for the best."""
    reason: Literal["model", "popular"]
    """`model`: ranked by the model. `popular`: filled in by popularity."""
    title: str | None
    categories: tuple[str, ...]
    parts: tuple[ScorePart, ...] | None = None
    """With `explain` = `attention`, `heads` or `occlusion`: why this item, largest part first. Null
    for an item that popularity filled in, and for a model without a wide part."""
    reasons: Reasons | None = None
    """With `explain` = `reasons`: why this item, for every model."""


@dataclass
class AttendedEvent:
    """One event that the model read, with its attention weight."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    item_id: str
    title: str | None
    """The title of the item."""
    timestamp: Rfc3339
    age_seconds: float
    """Seconds from the event to the query time."""
    action: str | None
    weight: float
    """The attention weight from the query position, averaged over heads."""
    occlusion: float | None
    """How much lower the score is without this event, or without its basket, compared with
    `occlusion_mean`; if requested and measured."""
    categories: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GroupIntensity:
    """The intensity of a group of items at the query time."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    group: str
    intensity: float
    """Events per day, from the last self-modulating layer."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """An event or a basket that was left out of the history."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    events: tuple[int, ...]
    """Their positions in `events` of the attention, counted from 0."""
    timestamp: Rfc3339
    weight: float
    """The sum of their attention weights."""
    occlusion: float
    """How much lower the score is without them, compared with `occlusion_mean`."""


@dataclass(frozen=True, slots=True)
class Attention:
    """Attention over the history: the weights of the last block, from the query position, before
    dropout."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    layer: Literal["last"]
    aggregation: Literal["mean_heads"]
    normalised: bool
    """Whether the weights sum to 1."""
    of_item_id: str | None
    """The item that the weights are for, if they differ by item: the best one."""
    intensities: tuple[GroupIntensity, ...] | None
    """For a self-modulating model: one per group of items."""
    events: tuple[AttendedEvent, ...]
    """The events that the model read, oldest first."""
    heads: tuple[tuple[float, ...], ...] | None
    """With `explain` = `heads`: for each head, the weights of `events`."""
    occlusion_of_item_id: str | None
    """With `explain` = `occlusion`: the item whose score is explained."""
    faithfulness: float | None
    """With `explain` = `occlusion`: Spearman's rank correlation of weight and occlusion over all
    that was left out; null where it says nothing, for the reason in `faithfulness_note`."""
    faithfulness_note: (
        Literal[
            "high",
            "medium",
            "reversed",
            "too_few_left_out",
            "equal_weights",
            "changes_within_noise",
            "not_significant",
        ]
        | None
    )
    """With `explain` = `occlusion`, what `faithfulness` says: `high` (0.7 or more), `medium`, or
    `reversed` (negative). Or why it is null: `too_few_left_out` (fewer than five), `equal_weights`,
    `changes_within_noise` (the changes differ by rounding alone), `not_significant` (chance alone
    gives as much in one of twenty cases)."""
    occlusion_unit: Literal["event", "basket"] | None
    """With `explain` = `occlusion`: what was left out in turn."""
    occlusion_mean: float | None
    """With `explain` = `occlusion`: how much lower the score is without one of `left_out`, on
    average. Any shorter history changes the score, so `occlusion` is relative to this mean; their
    sum is the change itself."""
    left_out: tuple[LeftOut, ...] | None
    """With `explain` = `occlusion`: what was left out in turn, oldest first."""


@dataclass(frozen=True, slots=True)
class RecommendationAnswer:
    """The items, with the facts that they are based on."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    recommendation_id: str
    """Send it with the events that this response leads to."""
    model_version: str
    query_time: Rfc3339
    history_used: int
    """The number of events that the model read."""
    unknown_item_ids: tuple[str, ...]
    """Items of the history that the model does not contain; it read the other events."""
    fallback: Literal["popular", "no_history"] | None
    """`no_history`: the history has no usable event, so the items are the most popular ones.
    `popular`: the model ranked fewer items than requested, and popular ones fill up."""
    items: tuple[RecommendedItem, ...]
    """Best first."""
    attention: Attention | None
    """If requested and the model attends; otherwise `warnings` has `attention_unavailable`."""
    warnings: tuple[str, ...]
    """Stable codes: `events_after_query_time`, `history_truncated`, `beyond_training_window`,
    `attention_unavailable` (the model does not attend), `diversity_unavailable` (the model learns
    no item vectors), `filters_match_nothing` (no item of the model passes the filters),
    `seen_items_truncated` (only items of the user's latest 10,000 events are left out as seen)."""
