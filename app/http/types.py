"""The types of requests and responses: ids, instants, and their base model."""

import math
import re
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    StringConstraints,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import PydanticCustomError

from model.clock import (
    FIRST_INSTANT,
    LAST_INSTANT,
    MICROSECONDS_PER_SECOND,
    from_datetime,
    to_datetime,
)

_MOST_UNKNOWN_FIELDS = 4


_RFC_3339 = re.compile(
    r"\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}:\d{2}(\.\d{1,9})?([Zz]|[+-]\d{2}:\d{2})?", re.ASCII
)
_WHOLE_SECONDS = re.compile(r"(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z,)+", re.ASCII)
_EPOCH_SECONDS = re.compile(r"-?\d{1,15}(\.\d{1,9})?", re.ASCII)


class RequestModel(BaseModel):
    """The base of request bodies: no coercion between types, no unknown fields."""

    model_config = ConfigDict(
        strict=True, extra="forbid", frozen=True, use_attribute_docstrings=True
    )

    _known_fields: ClassVar[int] = 0

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        """Count the fields once: a batch has a thousand objects."""
        cls._known_fields = len(cls.model_fields)

    @model_validator(mode="before")
    @classmethod
    def _limit_fields(cls, value: Any) -> Any:
        # Every unknown field is a separate error: thousands would delay all other requests.
        if isinstance(value, dict) and len(value) > cls._known_fields + _MOST_UNKNOWN_FIELDS:
            raise PydanticCustomError(
                "too_many_fields",
                "an object here has at most {most} fields, all of them known",
                {"most": cls._known_fields},
            )
        return value


RESPONSE_CONFIG = ConfigDict(extra="forbid", use_attribute_docstrings=True, defer_build=True)
"""Configuration of the dataclasses of responses; orjson serializes them without a copy."""


def parse_instant(value: object) -> int:
    """Parse an RFC 3339 text with an offset, or epoch seconds, into epoch microseconds.

    Raises:
        PydanticCustomError: if `value` is neither, or lies outside the years 1 to 9999.
    """
    if isinstance(value, str):
        instant: float = _parse_rfc_3339(value)
    elif isinstance(value, int) and not isinstance(value, bool):
        instant = value * MICROSECONDS_PER_SECOND
    elif isinstance(value, float) and math.isfinite(value):
        # Infinite for the largest floats, so it is rounded only once its range is checked.
        instant = value * MICROSECONDS_PER_SECOND
    else:
        raise PydanticCustomError(
            "instant_type", "an instant is an RFC 3339 text with an offset, or epoch seconds"
        )
    if not FIRST_INSTANT <= instant <= LAST_INSTANT:
        raise PydanticCustomError(
            "instant_range", "an instant lies within the years 1 to 9999 (UTC)"
        )
    return round(instant)


def parse_instants(values: list[Any]) -> list[int]:
    """Parse instants as `parse_instant` does, those in whole seconds of UTC all at once.

    Raises:
        PydanticCustomError: if one of them is no instant.
    """
    try:
        joined = "".join(f"{value}," for value in values)
        texts = joined.split("Z,")[:-1]
        if _WHOLE_SECONDS.fullmatch(joined) and len(texts) == len(values):
            microseconds = np.array(texts, dtype="datetime64[us]").astype(np.int64)
            if microseconds.min() >= FIRST_INSTANT:
                instants: list[int] = microseconds.tolist()
                return instants
    except ValueError:
        pass  # A day that is not in the calendar: parsing it alone reports it.
    return [parse_instant(value) for value in values]


def _parse_rfc_3339(text: str) -> int:
    match = _RFC_3339.fullmatch(text)
    if match is None:
        raise PydanticCustomError(
            "instant_format", "an instant looks like 2026-01-31T12:00:00Z or 1769860800"
        )
    if match.group(2) is None:
        raise PydanticCustomError(
            "instant_naive", "an instant needs an offset from UTC; append Z or +00:00"
        )
    try:
        return from_datetime(datetime.fromisoformat(text.upper()))
    except ValueError as error:
        raise PydanticCustomError(
            "instant_calendar", "an instant exists in the calendar; {why}", {"why": str(error)}
        ) from error


def format_instant(instant: int) -> str:
    """Format epoch microseconds as RFC 3339 in UTC, ending in Z."""
    return to_datetime(instant).isoformat().replace("+00:00", "Z")


def format_instants(instants: Sequence[int]) -> list[str]:
    """Format instants as `format_instant` does, all at once if they are in whole seconds."""
    exact = np.array(instants, dtype="datetime64[us]")
    seconds = exact.astype("datetime64[s]")
    if (seconds != exact).any():
        return [format_instant(instant) for instant in instants]
    texts: list[str] = np.datetime_as_string(seconds, timezone="UTC").tolist()
    return texts


def format_optional_instant(instant: int | None) -> str | None:
    """Format an instant as `format_instant` does; None stays None."""
    return None if instant is None else format_instant(instant)


_INSTANT_SCHEMA: dict[str, Any] = {
    "anyOf": [
        {"type": "string", "format": "date-time"},
        {"type": "number", "minimum": -62135596800, "exclusiveMaximum": 253402300800},
    ],
    "description": "RFC 3339 with an offset from UTC, or epoch seconds",
}

Instant = Annotated[int, BeforeValidator(parse_instant), WithJsonSchema(_INSTANT_SCHEMA)]
"""An instant of a request body, parsed into epoch microseconds."""


def _parse_number(text: object) -> object:
    """Parse epoch seconds, which are text in a query string."""
    if isinstance(text, str) and _EPOCH_SECONDS.fullmatch(text):
        return float(text) if "." in text else int(text)
    return text


QueryInstant = Annotated[Instant, BeforeValidator(_parse_number)]
"""An instant of a query string, parsed into epoch microseconds."""

Rfc3339 = Annotated[str, WithJsonSchema({"type": "string", "format": "date-time"})]
"""An instant of a response."""

LONGEST_ID, LONGEST_ACTION = 256, 64
"""Characters of an id, and of the kind of an event."""

_PRINTABLE = r"^[^\x00-\x1f\x7f-\x9f]*$"

Id = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_ID, pattern=_PRINTABLE)]
"""The id of a user, an item or an event: 1 to 256 characters, none of them a control character."""

Action = Annotated[
    str, StringConstraints(min_length=1, max_length=LONGEST_ACTION, pattern=_PRINTABLE)
]
"""The kind of an event, such as `view` or `purchase`."""
