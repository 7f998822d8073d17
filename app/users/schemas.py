"""What the service knows of users."""

from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import ConfigDict

from app.wire import ANSWER, Rfc3339


@dataclass(frozen=True, slots=True)
class UserSummary:
    """A user with stored events."""

    __pydantic_config__: ClassVar[ConfigDict] = ANSWER

    user_id: str
    events: int
    """How many are stored."""
    last_event_at: Rfc3339


@dataclass(frozen=True, slots=True)
class UserList:
    """Users, by id in code point order."""

    __pydantic_config__: ClassVar[ConfigDict] = ANSWER

    users: tuple[UserSummary, ...]


@dataclass(frozen=True, slots=True)
class UserEvent:
    """One stored event of a user."""

    __pydantic_config__: ClassVar[ConfigDict] = ANSWER

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

    __pydantic_config__: ClassVar[ConfigDict] = ANSWER

    user_id: str
    events: tuple[UserEvent, ...]
    """Newest first."""
