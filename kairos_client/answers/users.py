"""Users, as their events show them."""

from typing import Any

from kairos_client.answers.answer import Answer, Moment


class UserSummary(Answer):
    """A user with stored events."""

    user_id: str
    events: int
    """How many are stored."""
    last_event_at: Moment


class UserList(Answer):
    """Users, by id in code point order."""

    users: tuple[UserSummary, ...]


class UserEvent(Answer):
    """One stored event of a user."""

    event_id: str
    item_id: str
    action: str
    timestamp: Moment
    value: float | None = None
    recommendation_id: str | None = None
    properties: dict[str, Any] | None = None


class UserHistory(Answer):
    """The stored events of one user; none for a user nobody has heard of."""

    user_id: str
    events: tuple[UserEvent, ...]
    """Newest first."""


class NextTimeQuantile(Answer):
    """An instant by which the next event has come with some probability."""

    share: float
    """The probability."""
    instant: Moment | None = None
    """None where no event is that likely ever to come, and beyond the year 9999."""


class NextTimeDensity(Answer):
    """The density of the next event at one interval."""

    interval_days: float
    """Days since `last_event_at`."""
    density: float
    """Per day."""


class NextTimeAnswer(Answer):
    """When the next event of a user comes, given that none has come until `at`."""

    user_id: str
    model_version: str
    at: Moment
    history_used: int
    """How many events the model read."""
    quantiles: tuple[NextTimeQuantile, ...]
    """By when it has come with a probability of 0.1, 0.5 and 0.9."""
    density: tuple[NextTimeDensity, ...]
    """For a plot, from `at` on."""
    last_event_at: Moment | None = None
    """The last event that the model read; None where there is none."""
    median: Moment | None = None
    """By when the next event has come with a probability of one half."""


class ErasedUser(Answer):
    """What was forgotten of a user."""

    deleted_events: int
    deleted_recommendations: int
    """Records of what the user was shown."""
    erased_until: Moment
    """Events of the user that happened up to this instant are not taken in again."""
