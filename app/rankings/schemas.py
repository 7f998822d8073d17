"""Request and response of POST /v1/rankings."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field

from app.histories.schemas import InstantRequest
from app.http.types import RESPONSE_CONFIG, Id, Rfc3339

MAX_RANKED = 500


class RankingRequest(InstantRequest):
    """The history, the query time, and the items to rank."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "history": [{"item_id": "50", "timestamp": "1997-12-04T15:30:00Z"}],
                    "query_time": "1997-12-05T20:00:00+01:00",
                    "item_ids": ["181", "172", "258"],
                }
            ]
        }
    )

    item_ids: Annotated[list[Id], Field(min_length=1, max_length=MAX_RANKED)]
    """The items to rank, in any order; duplicates are ranked once."""


@dataclass(frozen=True, slots=True)
class RankedItem:
    """One of the given items."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    item_id: str
    score: float | None
    """Larger is better; comparable within one response only. Null for an unknown item."""
    rank: int
    """1 for the best. Unknown items come last, in the given order."""
    reason: Literal["model", "popular", "unknown"]
    """What determined the rank: `model`, `popular` (popularity, since the history has no usable
    event), or `unknown` (the model does not contain the item)."""
    title: str | None
    categories: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RankingAnswer:
    """The given items in order, with the facts that the order is based on."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    model_version: str
    query_time: Rfc3339
    history_used: int
    """The number of events that the model read."""
    unknown_item_ids: tuple[str, ...]
    """Items of the history that the model does not contain; it read the other events."""
    fallback: Literal["no_history"] | None
    """`no_history`: the history has no usable event, so the items are ranked by popularity."""
    items: tuple[RankedItem, ...]
    """Every given item once, best first."""
    warnings: tuple[str, ...]
    """Stable codes: `events_after_query_time`, `history_truncated`, `beyond_training_window`."""
