"""Request and response of POST /v1/events."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import (
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    ValidationError,
    ValidatorFunctionWrapHandler,
)
from pydantic_core import core_schema

from app.http import validation_errors as rules
from app.http.properties import Properties
from app.http.types import RESPONSE_CONFIG, Action, Id, Instant, RequestModel

MAX_EVENTS = 1000


class IncomingEvent(RequestModel):
    """One user, one item, one instant."""

    event_id: Id | None = None
    """The idempotency key: of several events with the same key, the first is stored. Default: a
    hash of user, item, action and timestamp."""
    user_id: Id
    """The user."""
    item_id: Id
    """The item."""
    action: Action
    """What the user did with it, such as "view", "purchase" or "rating"."""
    timestamp: Instant
    """When it happened: from the year 1990 on, and at most 300 seconds in the future."""
    value: float | None = Field(default=None, allow_inf_nan=False)
    """A number that belongs to the action, such as a rating or a price."""
    recommendation_id: Id | None = None
    """The recommendation that led to the event."""
    properties: Properties | None = None
    """Additional data, stored unchanged."""


@dataclass(frozen=True, slots=True)
class InvalidEvent:
    """An event of a batch that fails validation: the rule's code, and a message."""

    code: str
    message: str


def _validate_event(
    value: Any, validate: ValidatorFunctionWrapHandler
) -> IncomingEvent | InvalidEvent:
    try:
        event: IncomingEvent = validate(value)
    except ValidationError as failure:
        error = failure.errors(include_url=False)[0]
        return InvalidEvent(
            code=error["type"],
            message=f"#{rules.format_json_pointer(error['loc'])}: {rules.describe_rule(error)}, "
            f"but got {rules.abbreviate(error['input'])}",
        )
    return event


class _ValidatedSeparately:
    """Validates each event of a list separately, so that one invalid event does not fail the batch.

    The OpenAPI description shows the valid form only.
    """

    def __get_pydantic_core_schema__(
        self, _: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        return core_schema.no_info_wrap_validator_function(
            _validate_event, handler.generate_schema(IncomingEvent)
        )


class EventBatch(RequestModel):
    """Events to store."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "events": [
                        {
                            "user_id": "u1",
                            "item_id": "50",
                            "action": "rating",
                            "timestamp": "1997-12-04T15:30:00Z",
                            "value": 5,
                        }
                    ]
                }
            ]
        }
    )

    events: list[Annotated[IncomingEvent | InvalidEvent, _ValidatedSeparately()]] = Field(
        max_length=MAX_EVENTS
    )
    """In any order. An event that breaks a rule is rejected; the others are stored."""


@dataclass(frozen=True, slots=True)
class RejectedEvent:
    """An event that was not stored."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    index: int
    """Position in the request, from 0."""
    code: str
    """The stable code of the broken rule."""
    message: str
    """The rule, the value and the remedy."""


@dataclass(frozen=True, slots=True)
class Ingested:
    """The outcome of a batch. Accepted events are on disk."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    accepted: int
    """Events that were new."""
    duplicates: int
    """Events that are already stored, or repeated within the batch."""
    rejected: tuple[RejectedEvent, ...]
    """Events that break a rule."""
