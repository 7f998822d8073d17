"""Responses of /v1/users."""

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
    """The number of stored events; 1,000 stands for that many or more."""
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
    """The stored events of one user; none for an unknown user."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    user_id: str
    events: tuple[UserEvent, ...]
    """Newest first."""
    first_event_at: Rfc3339 | None
    """The first of all stored events, which `events` need not hold; null if there is none."""
    stored_events: int
    """The number of all stored events, of which `events` holds the newest."""


@dataclass(frozen=True, slots=True)
class NextTimeQuantile:
    """An instant by which the next event happens with a given probability."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    share: float
    """The probability."""
    instant: Rfc3339 | None
    """Null if the history is empty, if the model predicts with probability `1 - share` or more that
    no event ever happens, or beyond the year 9999."""


@dataclass(frozen=True, slots=True)
class NextTimeDensity:
    """The probability density of the next event at one interval."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    interval_days: float
    """Days since `last_event_at`."""
    density: float
    """Per day."""


@dataclass(frozen=True, slots=True)
class NextTimeAnswer:
    """The predicted time of a user's next event, given that none happened between the last one and
    `at`.

    With `at` equal to the instant of the last event, this is the unconditional distribution.
    """

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    user_id: str
    model_version: str
    at: Rfc3339
    history_used: int
    """The number of events that the model read."""
    last_event_at: Rfc3339 | None
    """The last event that the model read; null if there is none."""
    median: Rfc3339 | None
    """The instant by which the next event happens with probability 0.5."""
    quantiles: tuple[NextTimeQuantile, ...]
    """The instants by which it happens with probability 0.1, 0.5 and 0.9."""
    zero_interval_probability: float
    """The probability that it happens at the instant of the last event; 0 if `at` is later."""
    density: tuple[NextTimeDensity, ...]
    """Points for a plot, from `at` on, given that it does not happen at the instant of the last
    event; between neighbours lies a probability of 0.02."""


@dataclass(frozen=True, slots=True)
class ErasedUser:
    """The number of deleted rows of a user."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    deleted_events: int
    deleted_recommendations: int
    """Impressions: records of recommendations that the user was shown."""
    erased_until: Rfc3339
    """Events of the user up to this instant are rejected from now on: the time of the erasure, or
    the last erased event if that is later."""
    warnings: tuple[str, ...]
    """Stable codes: `nothing_stored` (no event and no impression had this user id; check it)."""
