"""Whose history a request is about, and as of when: what every question to a model begins with."""

from typing import Annotated

from pydantic import Field

from app.http.types import Action, Id, Instant, RequestModel
from app.settings import HISTORY_CAP


class InlineEvent(RequestModel):
    """One past event, sent along with the request."""

    item_id: Id
    """The item, by the name the catalogue knows it by."""
    timestamp: Instant
    """When it happened."""
    action: Action | None = None
    """What the user did, where the model was trained with actions."""


class HistoryRequest(RequestModel):
    """A history: stored, sent along, or both."""

    user_id: Id | None = None
    """Whose stored history to use. A user nobody has heard of is a cold start, not an error."""
    history: Annotated[list[InlineEvent], Field(max_length=HISTORY_CAP)] | None = None
    """Events to use instead of the stored ones, in any order; one told twice counts once. If
    `user_id` is given too, these win, unless `merge` joins both."""
    merge: bool = False
    """Whether to join the stored history with the inline one; an event in both counts once."""
    model_version: Id | None = None
    """The version that must answer. Default: the current one, or its challenger."""


class InstantRequest(HistoryRequest):
    """A history, asked about at one instant."""

    query_time: Instant | None = None
    """The instant the answer is for; events after it are not used. Default: now."""
    query_time_withheld: bool = False
    """Whether to keep the query time from the model, which then knows only the times of the events;
    the query time still bounds which events are used."""
