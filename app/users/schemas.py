"""What the service knows of users."""

from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import ConfigDict

from app.http.types import RESPONSE_CONFIG, Rfc3339


@dataclass(frozen=True, slots=True)
class UserSummary:
    """A user with stored events."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    user_id: str
    events: int
    """How many are stored."""
    last_event_at: Rfc3339


@dataclass(frozen=True, slots=True)
class UserList:
    """Users, by id in code point order."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    users: tuple[UserSummary, ...]


@dataclass(frozen=True, slots=True)
class UserEvent:
    """One stored event of a user."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    event_id: str
    item_id: str
    action: str
    timestamp: Rfc3339
    value: float | None
    recommendation_id: str | None
    properties: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class UserHistory:
    """The stored events of one user; none for a user nobody has heard of."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    user_id: str
    events: tuple[UserEvent, ...]
    """Newest first."""


@dataclass(frozen=True, slots=True)
class NextTimeQuantile:
    """An instant by which the next event has come with some probability."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    share: float
    """The probability."""
    instant: Rfc3339 | None
    """Null where the history is empty, where the model gives at least `1 - share` to no event ever
    coming, and beyond the year 9999."""


@dataclass(frozen=True, slots=True)
class NextTimeDensity:
    """The density of the next event at one interval."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    interval_days: float
    """Days since `last_event_at`."""
    density: float
    """Per day."""


@dataclass(frozen=True, slots=True)
class NextTimeAnswer:
    """When the next event of a user comes, given that none has come between the last one and `at`.

    Asked at the instant of the last event, nothing is known beyond the history.
    """

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    user_id: str
    model_version: str
    at: Rfc3339
    history_used: int
    """How many events the model read."""
    last_event_at: Rfc3339 | None
    """The last event that the model read; null where there is none."""
    median: Rfc3339 | None
    """By when the next event has come with a probability of one half."""
    quantiles: tuple[NextTimeQuantile, ...]
    """By when it has come with a probability of 0.1, 0.5 and 0.9."""
    density: tuple[NextTimeDensity, ...]
    """For a plot, from `at` on: two hundredths of the probability lie between neighbours."""


@dataclass(frozen=True, slots=True)
class ErasedUser:
    """What was forgotten of a user."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    deleted_events: int
    deleted_recommendations: int
    """Records of what the user was shown."""
    erased_until: Rfc3339
    """Events of the user that happened up to this instant are not taken in again: now, or the last
    erased event if that is later."""
