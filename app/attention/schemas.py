"""What a request for a sweep over instants says, and what it is answered."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field

from app.histories.schemas import HistoryRequest
from app.http.types import RESPONSE_CONFIG, Instant, Rfc3339
from app.recommendations.schemas import RecommendedItem

MAX_INSTANTS = 500


class AttentionRequest(HistoryRequest):
    """One history, and the instants to ask about it."""

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
    """The instants, in any order; each sees only what had happened by then."""
    n: int = Field(default=0, ge=0, le=100)
    """How many items to answer at each instant; 0 asks for the weights alone."""
    exclude_seen: bool = True
    """Whether to leave out items of the history, as far as it had happened."""


@dataclass(frozen=True, slots=True)
class SweptEvent:
    """One event that the model read at any of the instants."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    item_id: str
    title: str | None
    timestamp: Rfc3339
    action: str | None
    categories: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AttentionAtInstant:
    """What the model attended to at one instant, and what it recommended."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    query_time: Rfc3339
    history_used: int
    """How many of the events the model read."""
    fallback: Literal["popular", "no_history"] | None
    """As of a recommendation."""
    weights: tuple[float | None, ...] | None
    """One per event of the sweep: 0 for one the model no longer read, null for one that had not
    happened yet. Null altogether if the model does not attend, or no event was read."""
    intensities: tuple[float, ...] | None
    """One per group of `groups`: how likely a self-modulating model finds an item of the group at
    the instant, per day. Null if the model does not say, or no event had happened yet."""
    items: tuple[RecommendedItem, ...]
    """Best first."""
    warnings: tuple[str, ...]
    """Stable codes: `history_truncated`, `beyond_training_window`."""


@dataclass(frozen=True, slots=True)
class AttentionAnswer:
    """Attention over one history while the clock runs: of the last block, from the query position,
    before dropout."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    model_version: str
    layer: Literal["last"]
    aggregation: Literal["mean_heads"]
    normalised: bool
    """Whether the weights of one instant sum to 1."""
    groups: tuple[str, ...] | None
    """The groups of items that `intensities` are of, by name; null if no instant has any."""
    unknown_item_ids: tuple[str, ...]
    """Items of the history that the model does not know; it read the rest."""
    events: tuple[SweptEvent, ...]
    """The events read at any of the instants, oldest first."""
    instants: tuple[AttentionAtInstant, ...]
    """In the order they were asked about."""
    warnings: tuple[str, ...]
    """Stable codes: those of any instant, `events_after_query_time` (later than every instant) and
    `attention_unavailable` (the model does not attend)."""
