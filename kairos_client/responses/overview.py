"""Responses about samples of users."""

from kairos_client.responses.response import Response, UtcDatetime


class ChangedUser(Response):
    """A user whose recommended items differ between two instants."""

    user_id: str
    change: float
    """0 for the same ten items in the same order, 1 for no common item."""
    entered: int
    """Number of items that are among the ten best at `until` only."""
    left: int
    """Number of items that are among the ten best at `at` only."""
    events: int
    """Number of events that the model read at `at`."""
    events_between: int
    """Number of events between the two instants."""


class ChangedUsers(Response):
    """The users of a sample whose recommended items change the most between two instants."""

    model_version: str
    at: UtcDatetime
    until: UtcDatetime
    compared_users: int
    """Number of users of the sample with an event that the model knows."""
    users: tuple[ChangedUser, ...]
    """Most changed first."""


class ExampleUser(Response):
    """A user, and an instant at which the last event is of the requested age."""

    user_id: str
    query_time: UtcDatetime
    last_event_at: UtcDatetime
    """The last event up to then."""
    item_id: str
    """Item of that event."""
    action: str | None = None
    """Action of that event."""


class ExampleUsers(Response):
    """Example users for an interval since the last event."""

    model_version: str
    at: UtcDatetime
    """The latest possible query time."""
    searched_users: int
    """Number of users whose events were read."""
    users: tuple[ExampleUser, ...]
    """Most recently active first."""


class Recipient(Response):
    """A user to whom an item would be recommended."""

    user_id: str
    rank: int
    """Rank of the item among those recommended to the user, at most 100."""
    score: float
    """Comparable with scores of the same user only."""


class RecipientsAtInstant(Response):
    """The users of a sample to whom an item would be recommended at one instant."""

    query_time: UtcDatetime
    sampled_users: int
    """Number of users of the sample with an event that the model knows."""
    listed: int
    """How many of them have the item among their 100 best."""
    recipients: tuple[Recipient, ...]
    """Best ranks first."""
    share_of_top_10: float | None = None
    """The share of them that have it among their ten best; None without any."""


class ItemRecipients(Response):
    """Who would be recommended an item, at a few instants."""

    item_id: str
    model_version: str
    instants: tuple[RecipientsAtInstant, ...]
    """Latest first."""
