"""Validation errors in words: the rule, its location, and the value."""

from collections.abc import Mapping
from typing import Any

_MOST_CHARACTERS = 60
_REWORDED = {"model_attributes_type": "input should be an object"}


def format_json_pointer(steps: tuple[int | str, ...]) -> str:
    """Format a JSON pointer into a request body."""
    return "".join(
        "/" + str(step)[:_MOST_CHARACTERS].replace("~", "~0").replace("/", "~1") for step in steps
    )


def describe_rule(error: Mapping[str, Any]) -> str:
    """Describe the rule that a pydantic error stands for, as a clause."""
    message = _REWORDED.get(error["type"]) or str(error["msg"])
    return message[:1].lower() + message[1:]


def abbreviate(value: object) -> str:
    """Shorten a value for a message."""
    if isinstance(value, dict):
        return f"an object of {len(value)} fields"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    if isinstance(value, str) and len(value) > _MOST_CHARACTERS:
        return f"{value[:_MOST_CHARACTERS]!r}... ({len(value)} characters)"
    return "null" if value is None else repr(value)[:_MOST_CHARACTERS]
