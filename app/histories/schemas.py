"""The request fields that select a history and a query time."""

from typing import Annotated

from pydantic import Field, GetCoreSchemaHandler
from pydantic_core import PydanticCustomError, core_schema

from app.http.types import (
    LONGEST_ACTION,
    LONGEST_ID,
    Action,
    Id,
    Instant,
    RequestModel,
    parse_instants,
)
from app.settings import HISTORY_CAP
from model.history import Event

_LEAST_FIELDS = 2
"""Of an event: its item and its time."""


class InlineEvent(RequestModel):
    """One past event, sent with the request."""

    item_id: Id
    """The item's id."""
    timestamp: Instant
    """When it happened."""
    action: Action | None = None
    """What the user did, if the model was trained with actions."""


class _InlineHistorySchema:
    """Validates inline events into events of the model, those of the usual form without pydantic.

    What the short way does not accept takes the long one, which reports what is wrong.
    """

    @classmethod
    def __get_pydantic_core_schema__(
        cls, _: object, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        checked = handler.generate_schema(
            Annotated[list[InlineEvent], Field(max_length=HISTORY_CAP)]
        )
        return core_schema.no_info_wrap_validator_function(_read_events, checked)


InlineHistory = Annotated[list[Event], _InlineHistorySchema]
"""Past events, sent with the request."""


def _read_events(value: object, check: core_schema.ValidatorFunctionWrapHandler) -> list[Event]:
    events = _read_usual_events(value)
    if events is not None:
        return events
    return [Event(event.item_id, event.timestamp, event.action) for event in check(value)]


def _read_usual_events(value: object) -> list[Event] | None:
    """Read events of the usual form; None if one has another form, valid or not."""
    if type(value) is not list or len(value) > HISTORY_CAP:
        return None
    items: list[str] = []
    actions: list[str | None] = []
    try:
        for fields in value:
            item_id, action = fields["item_id"], None
            if len(fields) != _LEAST_FIELDS:
                action = fields["action"]
                if len(fields) > _LEAST_FIELDS + 1:
                    return None
            if action is not None and not _is_usual(action, LONGEST_ACTION):
                return None
            if not _is_usual(item_id, LONGEST_ID):
                return None
            items.append(item_id)
            actions.append(action)
        instants = parse_instants([fields["timestamp"] for fields in value])
    except (KeyError, TypeError, PydanticCustomError):
        return None
    return list(map(Event, items, instants, actions))


def _is_usual(text: object, longest: int) -> bool:
    """Return whether a text is valid, and printable: control characters are not."""
    return type(text) is str and 0 < len(text) <= longest and text.isprintable()


class HistoryRequest(RequestModel):
    """A history: stored, inline, or both."""

    user_id: Id | None = None
    """The user whose stored history to use. An unknown user is a cold start, not an error."""
    history: InlineHistory | None = None
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
