"""Responses about users and their stored events."""

from typing import Any

from kairos_client.responses.response import Response, UtcDatetime


class UserSummary(Response):
    """A user with stored events."""

    user_id: str
    events: int
    """Number of stored events."""
    last_event_at: UtcDatetime


class UserList(Response):
    """Users, by id in code point order."""

    users: tuple[UserSummary, ...]


class UserEvent(Response):
    """One stored event of a user."""

    event_id: str
    item_id: str
    action: str
    timestamp: UtcDatetime
    value: float | None = None
    recommendation_id: str | None = None
    properties: dict[str, Any] | None = None


class UserHistory(Response):
    """The stored events of one user; empty for an unknown user."""

    user_id: str
    events: tuple[UserEvent, ...]
    """Newest first."""
    first_event_at: UtcDatetime | None = None
    """The first of all stored events, which `events` need not hold; None if there is none."""
    stored_events: int | None = None
    """The number of all stored events, of which `events` holds the newest; None from an older
    service."""


class NextTimeQuantile(Response):
    """The instant by which the next event has come with a given probability."""

    share: float
    """The probability."""
    instant: UtcDatetime | None = None
    """None if the probability is never reached, or not before the year 10000."""


class NextTimeDensity(Response):
    """The density of the next event at one interval."""

    interval_days: float
    """Days since `last_event_at`."""
    density: float
    """Per day."""


class NextTimeAnswer(Response):
    """The distribution of a user's next event, given that none came until `at`."""

    user_id: str
    model_version: str
    at: UtcDatetime
    history_used: int
    """Number of events that the model used."""
    quantiles: tuple[NextTimeQuantile, ...]
    """For the probabilities 0.1, 0.5 and 0.9."""
    density: tuple[NextTimeDensity, ...]
    """Points for a plot, from `at` on."""
    last_event_at: UtcDatetime | None = None
    """The last event that the model used; None without one."""
    median: UtcDatetime | None = None
    """The quantile 0.5."""
    zero_interval_probability: float | None = None
    """The probability that it comes at the instant of the last event; None from an older
    service."""


class ErasedUser(Response):
    """The result of erasing a user."""

    deleted_events: int
    deleted_recommendations: int
    """Number of deleted recommendation records."""
    erased_until: UtcDatetime
    """Events of the user up to this instant are rejected from now on."""
    warnings: tuple[str, ...] = ()
    """Stable codes: `nothing_stored` (nothing had this user id)."""
