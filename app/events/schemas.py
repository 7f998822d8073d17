"""Events on their way in, and what became of them."""

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
    """One user met one item at one instant."""

    event_id: Id | None = None
    """The idempotency key: of several events with the same, the first wins. Default: a hash of
    user, item, action and timestamp."""
    user_id: Id
    """Who."""
    item_id: Id
    """What."""
    action: Action
    """What the user did with it, such as "view", "purchase" or "rating"."""
    timestamp: Instant
    """When it happened: at most 300 seconds from now, and as long ago as you like."""
    value: float | None = Field(default=None, allow_inf_nan=False)
    """A number that belongs to the action, such as a rating or a price."""
    recommendation_id: Id | None = None
    """The recommendation that led to it."""
    properties: Properties | None = None
    """Anything else worth keeping."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why one event of a batch is not kept."""

    code: str
    message: str


def _refuse_alone(value: Any, validate: ValidatorFunctionWrapHandler) -> IncomingEvent | Refusal:
    try:
        event: IncomingEvent = validate(value)
    except ValidationError as failure:
        error = failure.errors(include_url=False)[0]
        return Refusal(
            code=error["type"],
            message=f"#{rules.place(error['loc'])}: {rules.rule(error)}, but got "
            f"{rules.shown(error['input'])}",
        )
    return event


class _JudgedAlone:
    """Makes a list of events one of events and refusals: a bad one must not cost the other 999.

    The API's description keeps to what should be sent.
    """

    def __get_pydantic_core_schema__(
        self, _: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        return core_schema.no_info_wrap_validator_function(
            _refuse_alone, handler.generate_schema(IncomingEvent)
        )


class EventBatch(RequestModel):
    """Events to keep."""

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

    events: list[Annotated[IncomingEvent | Refusal, _JudgedAlone()]] = Field(max_length=MAX_EVENTS)
    """In any order. An event that breaks a rule is refused alone; the others are kept."""


@dataclass(frozen=True, slots=True)
class RejectedEvent:
    """An event that was not kept."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    index: int
    """Its position in the request, from 0."""
    code: str
    """The rule it breaks, stable."""
    message: str
    """The rule, the value and the remedy."""


@dataclass(frozen=True, slots=True)
class Ingested:
    """What became of a batch; whatever was accepted is on disk."""

    __pydantic_config__: ClassVar[ConfigDict] = RESPONSE_CONFIG

    accepted: int
    """Events that were new."""
    duplicates: int
    """Events already known, or given twice in the batch."""
    rejected: tuple[RejectedEvent, ...]
    """Events that break a rule."""
