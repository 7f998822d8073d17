"""Request and response of POST /v1/attention."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field

from app.histories.schemas import HistoryRequest
from app.http.types import RESPONSE_CONFIG, Instant, Rfc3339
from app.recommendations.schemas import RecommendedItem

MAX_INSTANTS = 500
MOST_HEADS = 1024


class AttentionRequest(HistoryRequest):
    """One history and the query times."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "history": [
                        {"item_id": "50", "timestamp": "1997-12-04T15:30:00Z"},
                        {"item_id": "181", "timestamp": 881250000},
                    ],
                    "query_times": ["1997-12-05T20:00:00+01:00", "1997-12-12T20:00:00+01:00"],
                    "n": 3,
                }
            ]
        }
    )

    query_times: Annotated[list[Instant], Field(min_length=1, max_length=MAX_INSTANTS)]
    """The query times, in any order; each uses only the events up to it."""
    n: int = Field(default=0, ge=0, le=100)
    """Maximum number of items at each query time; 0 returns the weights only."""
    exclude_seen: bool = True
    """Whether to leave out items of the history up to the query time."""
    query_time_withheld: bool = False
    """Whether to withhold the query times from the model, as in a recommendation."""
    head: Annotated[int, Field(ge=1, le=MOST_HEADS)] | None = None
    """The number of an attention head, from 1, whose weights are returned instead of the mean."""
    weights_of: Literal["all", "read"] = "all"
    """`all`: each instant has a weight for every event. `read`: only for the events that the model
    read, from `first_event` on, which is much less where a history is long."""


@dataclass
class SweptEvent:
    """One event that the model read at any of the query times."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    item_id: str
    title: str | None
    timestamp: Rfc3339
    action: str | None
    categories: tuple[str, ...]


@dataclass
class AttentionAtInstant:
    """The attention weights and the recommended items at one query time."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    query_time: Rfc3339
    history_used: int
    """The number of events that the model read."""
    fallback: Literal["popular", "no_history"] | None
    """As in a recommendation."""
    first_event: int
    """The index in `events` of the first event that the model read."""
    weights: tuple[float | None, ...] | None
    """One per event of the sweep: 0 for an event that the model did not read, null for one after
    the query time. With `weights_of: "read"`, one per event that the model read, from `first_event`
    on. Null as a whole if the model does not attend, or no event was read."""
    intensities: tuple[float, ...] | None
    """One per group of `groups`: the intensity of the group's items at the query time, per day, for
    self-modulating models. Null for other models, or if no event precedes the query time."""
    items: tuple[RecommendedItem, ...]
    """Best first."""
    warnings: tuple[str, ...]
    """Stable codes: `history_truncated`, `beyond_training_window`."""


@dataclass(frozen=True, slots=True)
class AttentionAnswer:
    """Attention over one history at many query times: the weights of the last block, from the query
    position, before dropout."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    model_version: str
    layer: Literal["last"]
    aggregation: Literal["mean_heads", "head"]
    """`head`: the weights are those of the head that the request names."""
    normalised: bool
    """Whether the weights at one query time sum to 1."""
    groups: tuple[str, ...] | None
    """The names of the groups of `intensities`; null if no query time has any."""
    unknown_item_ids: tuple[str, ...]
    """Items of the history that the model does not contain; it read the other events."""
    events: tuple[SweptEvent, ...]
    """The events read at any of the query times, oldest first."""
    instants: tuple[AttentionAtInstant, ...]
    """In the order of the request."""
    warnings: tuple[str, ...]
    """Stable codes: those of any instant, `events_after_query_time` (later than every query time),
    `attention_unavailable` (the model does not attend)."""
