"""Responses about samples of users."""

from dataclasses import dataclass
from typing import ClassVar

from pydantic import ConfigDict

from app.http.types import RESPONSE_CONFIG, Rfc3339


@dataclass(frozen=True, slots=True)
class ChangedUser:
    """A user whose recommended items differ between two instants."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    user_id: str
    change: float
    """1 less the rank-biased overlap (persistence 0.9) of the ten best items: 0 for the same items
    in the same order, 1 for no common item."""
    entered: int
    """Items that are among the ten best at `until` only."""
    left: int
    """Items that are among the ten best at `at` only."""
    events: int
    """The number of events that the model read at `at`."""
    events_between: int
    """The number of events between the two instants, which the model reads at the later one."""


@dataclass(frozen=True, slots=True)
class ChangedUsers:
    """The users of a sample whose recommended items change the most between two instants."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    model_version: str
    at: Rfc3339
    until: Rfc3339
    compared_users: int
    """The users of the sample with an event that the model knows."""
    users: tuple[ChangedUser, ...]
    """The most changed first."""


@dataclass(frozen=True, slots=True)
class ExampleUser:
    """A user, and an instant at which the last event is of the requested age."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    user_id: str
    query_time: Rfc3339
    """The instant: after `last_event_at`, and before the user's next event."""
    last_event_at: Rfc3339
    """The last event up to then."""
    item_id: str
    """Of that event."""
    action: str | None
    """Of that event."""


@dataclass(frozen=True, slots=True)
class ExampleUsers:
    """Example users for an interval since the last event."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    model_version: str
    at: Rfc3339
    """The latest possible query time."""
    searched_users: int
    """The users whose events were read: 50 at a time, until there are enough examples."""
    users: tuple[ExampleUser, ...]
    """The most recently active first."""


@dataclass(frozen=True, slots=True)
class Recipient:
    """A user to whom an item would be recommended."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    user_id: str
    rank: int
    """Of the item among those recommended to the user: 1 for the best, at most 100."""
    score: float
    """Comparable with scores of the same user only."""


@dataclass(frozen=True, slots=True)
class RecipientsAtInstant:
    """The users of a sample to whom an item would be recommended at one instant."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    query_time: Rfc3339
    sampled_users: int
    """The users of the sample with an event that the model knows."""
    listed: int
    """How many of them have the item among their 100 best."""
    share_of_top_10: float | None
    """The share of them that have it among their ten best; null without any."""
    recipients: tuple[Recipient, ...]
    """The users with the best ranks, best first."""


@dataclass(frozen=True, slots=True)
class ItemRecipients:
    """Who would be recommended an item, at a few instants."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    item_id: str
    model_version: str
    instants: tuple[RecipientsAtInstant, ...]
    """Latest first. Each has a sample of its own: the users with the latest events up to then."""
