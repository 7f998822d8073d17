"""What a request to rank given items says, and what it is answered."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field

from app.histories.schemas import InstantRequest
from app.http.types import RESPONSE_CONFIG, Id, Rfc3339

MAX_RANKED = 500


class RankingRequest(InstantRequest):
    """Which history, which instant, and which items to put in order."""

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
    """The items to rank, in any order; one that is named twice is ranked once."""


@dataclass(frozen=True, slots=True)
class RankedItem:
    """One of the given items."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    item_id: str
    score: float | None
    """Larger is better; comparable within one answer only. Null for an unknown item."""
    rank: int
    """1 for the best. Unknown items come last, in the order they were given."""
    reason: Literal["model", "popular", "unknown"]
    """Whether the model ranked it, its popularity did for want of a usable history, or nothing
    could, because the model does not know the item."""
    title: str | None
    categories: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RankingAnswer:
    """The given items in order, and an account of what the order rests on."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    model_version: str
    query_time: Rfc3339
    history_used: int
    """How many events the model read."""
    unknown_item_ids: tuple[str, ...]
    """Items of the history that the model does not know; it read the rest."""
    fallback: Literal["no_history"] | None
    """`no_history`: nothing usable in the history, so popularity ranked the items."""
    items: tuple[RankedItem, ...]
    """Best first: every given item, once."""
    warnings: tuple[str, ...]
    """Stable codes: `events_after_query_time`, `history_truncated`, `beyond_training_window`."""
