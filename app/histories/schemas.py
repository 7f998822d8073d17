"""The request fields that select a history and a query time."""

from typing import Annotated

from pydantic import Field

from app.http.types import Action, Id, Instant, RequestModel
from app.settings import HISTORY_CAP


class InlineEvent(RequestModel):
    """One past event, sent with the request."""

    item_id: Id
    """The item's id."""
    timestamp: Instant
    """When it happened."""
    action: Action | None = None
    """What the user did, if the model was trained with actions."""


class HistoryRequest(RequestModel):
    """A history: stored, inline, or both."""

    user_id: Id | None = None
    """The user whose stored history to use. An unknown user is a cold start, not an error."""
    history: Annotated[list[InlineEvent], Field(max_length=HISTORY_CAP)] | None = None
    """Events to use instead of the stored ones, in any order; duplicates count once. With `user_id`
    these replace the stored history, unless `merge` is true."""
    merge: bool = False
    """Whether to merge the stored and the inline history; an event in both counts once."""
    model_version: Id | None = None
    """The model version to use. Default: the current one, or its challenger."""


class InstantRequest(HistoryRequest):
    """A history and one query time."""

    query_time: Instant | None = None
    """The instant that the response is for; later events are not used. Default: now."""
    query_time_withheld: bool = False
    """Whether to withhold the query time from the model, which then reads only the times of the
    events. The query time still limits which events are used."""
