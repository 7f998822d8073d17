"""What a recommendation request says, and what it is answered."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field

from app.histories.schemas import InstantRequest
from app.http.types import RESPONSE_CONFIG, Id, RequestModel, Rfc3339

ItemIds = Annotated[list[Id], Field(max_length=1000)]


class CategoryFilter(RequestModel):
    """Which categories may be answered."""

    any: list[Id] = Field(default=[], max_length=100)
    """If any: only items of at least one of these categories."""
    none: list[Id] = Field(default=[], max_length=100)
    """No items of these categories."""


class RecommendationRequest(InstantRequest):
    """Which history, which instant, and which items may be answered."""

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
    """How many items to answer."""
    exclude_seen: bool = True
    """Whether to leave out items of the history."""
    exclude_item_ids: ItemIds = Field(default=[])
    """Items never to answer."""
    include_item_ids: ItemIds = Field(default=[])
    """If any: only these items may be answered."""
    categories: CategoryFilter = CategoryFilter()
    """Which categories may be answered, by what was last stored of each item."""
    available_only: bool = True
    """Whether to leave out items that are not available at the query time."""
    diversity: float = Field(default=0.0, ge=0, le=1, allow_inf_nan=False)
    """0: the best items by score. Towards 1: items ever less like each other (maximal marginal
    relevance on the item vectors); ranks then follow that choice, not the scores."""
    strict: bool = False
    """Whether to answer fewer than `n` items rather than fill up with popular ones."""
    shown: bool = True
    """Whether the items go to a user, and so count as shown by their version. False for a look at
    what a model would say: nothing of it is kept, and no shadow is asked."""
    explain: Literal["none", "attention", "heads", "occlusion"] = "none"
    """`attention`: how much each event counted, averaged over heads. `heads`: each head, too.
    `occlusion`: also what the score owes to each of the 20 most attended events."""
    explain_item_id: Id | None = None
    """With `explain` = `occlusion`: whose score. Default: the best item answered."""


@dataclass(frozen=True, slots=True)
class RecommendedItem:
    """One recommended item."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    item_id: str
    score: float
    """Larger is better; comparable within one answer only."""
    rank: int
    """1 for the best."""
    reason: Literal["model", "popular"]
    """Whether the model chose it, or it fills in as popular."""
    title: str | None
    categories: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AttendedEvent:
    """One event the model read, and how much it counted."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    item_id: str
    title: str | None
    """As the model's catalogue has it."""
    timestamp: Rfc3339
    age_seconds: float
    """Time from the event to the query time."""
    action: str | None
    weight: float
    """The attention from the query position, averaged over heads."""
    occlusion: float | None
    """How much lower the score is without this event, where that was asked for and measured."""
    categories: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GroupIntensity:
    """How likely the model finds an item of a group at the query time."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    group: str
    intensity: float
    """Per day, as the last self-modulating layer has it."""


@dataclass(frozen=True, slots=True)
class Attention:
    """Attention over the history: of the last block, from the query position, before dropout."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    layer: Literal["last"]
    aggregation: Literal["mean_heads"]
    normalised: bool
    """Whether the weights sum to 1."""
    of_item_id: str | None
    """The item the weights are about, for a model that attends differently for each: the best."""
    intensities: tuple[GroupIntensity, ...] | None
    """For a self-modulating model, per group of items."""
    events: tuple[AttendedEvent, ...]
    """The events used, oldest first."""
    heads: tuple[tuple[float, ...], ...] | None
    """With `explain` = `heads`: for each head the weights of `events`."""
    occlusion_of_item_id: str | None
    """With `explain` = `occlusion`: the item whose score the events were left out of."""
    faithfulness: float | None
    """With `explain` = `occlusion`: Spearman's rank correlation of weight and occlusion over the
    events that were left out; null where there is no order to compare."""


@dataclass(frozen=True, slots=True)
class RecommendationAnswer:
    """The items, and an account of what they rest on."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    recommendation_id: str
    """Send it back with the events this answer leads to."""
    model_version: str
    query_time: Rfc3339
    history_used: int
    """How many events the model read."""
    unknown_item_ids: tuple[str, ...]
    """Items of the history that the model does not know; it read the rest."""
    fallback: Literal["popular", "no_history"] | None
    """`no_history`: nothing usable in the history, so these are the popular items. `popular`: the
    model's items were too few, and popular ones fill up."""
    items: tuple[RecommendedItem, ...]
    """Best first."""
    attention: Attention | None
    """If asked for and the model attends at all (`attention_unavailable` says it does not)."""
    warnings: tuple[str, ...]
    """Stable codes: `events_after_query_time`, `history_truncated`, `beyond_training_window`,
    `attention_unavailable` (the model does not attend), `diversity_unavailable` (the model learns
    no item vectors)."""
