"""Broken rules in words: which rule, where, and what was sent instead."""

from collections.abc import Mapping
from typing import Any

_SHOWN = 60
_IN_OUR_WORDS = {"model_attributes_type": "input should be an object"}


def place(steps: tuple[int | str, ...]) -> str:
    """A JSON pointer into what was sent."""
    return "".join("/" + str(step)[:_SHOWN].replace("~", "~0").replace("/", "~1") for step in steps)


def rule(error: Mapping[str, Any]) -> str:
    """The rule that one of pydantic's errors stands for, as a clause."""
    message = _IN_OUR_WORDS.get(error["type"]) or str(error["msg"])
    return message[:1].lower() + message[1:]


def shown(value: object) -> str:
    """A value as a message may repeat it: short, never the whole of what was sent."""
    if isinstance(value, dict):
        return f"an object of {len(value)} fields"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    if isinstance(value, str) and len(value) > _SHOWN:
        return f"{value[:_SHOWN]!r}... ({len(value)} characters)"
    return "null" if value is None else repr(value)[:_SHOWN]
