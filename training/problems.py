"""What is wrong with settings, a suite or a record, in words."""

import difflib
import re
from collections.abc import Iterator, Sequence
from typing import get_args

from pydantic import JsonValue, ValidationError
from pydantic_core import ErrorDetails

from model.config import Config

LONGEST_VALUE = 40
"""Characters of a value that is shown."""


def format_problems(error: ValueError | OSError, rows: JsonValue = None) -> str:
    """Format what is wrong with settings, a suite or a record, in one line, with short values only.

    Args:
        rows: of the suite, as in its file, to name one by its name instead of its number.
    """
    if not isinstance(error, ValidationError):
        return str(error)
    problems = error.errors(include_url=False)
    # Without an invalid row none may be left, which is no problem of its own.
    if any(len(each["loc"]) > 1 and each["loc"][0] == "rows" for each in problems):
        problems = [each for each in problems if each["loc"] != ("rows",)]
    return ", ".join(
        f"{_format_place(each, rows)}{_format_problem(each, error.title)}" for each in problems
    )


def format_with_remedy(error: ValueError | OSError, rows: JsonValue = None) -> str:
    """Format the same, and what to do: "correct it", where the error names no remedy itself.

    Args:
        rows: as for `format_problems`.
    """
    problems = format_problems(error, rows)
    is_own = isinstance(error, ValidationError) and all(
        each["type"] == "value_error" for each in error.errors()
    )
    return problems if is_own else f"{problems}; correct it"


def _format_place(problem: ErrorDetails, rows: JsonValue) -> str:
    match problem["loc"]:
        case ("rows", int(number), *rest) if isinstance(rows, list):
            row = rows[number]
            name = row.get("name", number) if isinstance(row, dict) else number
            return f"row {name}: {'.'.join(map(str, rest))}{': ' if rest else ''}"
        case ():
            return ""
        case place:
            return f"{'.'.join(map(str, place))}: "


def _format_problem(problem: ErrorDetails, title: str) -> str:
    """Format one problem: in lower case with its value; for an unknown name the nearest known.

    Args:
        title: the name of the settings that were validated.
    """
    context, value = problem.get("ctx", {}), problem["input"]
    match problem["type"]:
        case "union_tag_invalid":
            known = re.findall(r"'([^']+)'", context["expected_tags"])
            tag, field = context["tag"], context["discriminator"]
            hint = _suggest(tag, known) or f" (known are {known})"
            return f"input tag {tag!r} found using {field} is not known{hint}"
        case "extra_forbidden":
            *place, name = problem["loc"]
            return f"there is no such setting here{_suggest(str(name), _list_fields(title, place))}"
        case "missing":
            return "it is missing"
        case "union_tag_not_found":
            field = context["discriminator"].strip("'")
            return f"it lacks the setting {field}{_show(value)}"
        case "value_error":  # of our own validators, which name value and remedy
            return str(context["error"])
    return problem["msg"][0].lower() + problem["msg"][1:] + _show(value)


def _show(value: object) -> str:
    """Show a value, if it is short; a long one would hide the problem."""
    is_plain = isinstance(value, str | int | float | dict | list)
    return f", but got {value!r}" if is_plain and len(repr(value)) <= LONGEST_VALUE else ""


def _suggest(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""


def _list_fields(title: str, place: Sequence[str | int]) -> list[str]:
    """List the settings that are known at a place, such as fit or encoder, self_attention.

    Args:
        title: the name of the whole settings; of others than ours nothing is listed.
    """
    found = [each for each in _list_settings(Config) if each.__name__ == title]
    for part in place:
        fields = [field for each in found for field in each.model_fields.items()]
        inner = [
            settings
            for name, field in fields
            if part in (name, field.alias)
            for settings in _find_settings(field.annotation)
        ]
        # Else the number of a row, or the kind of one of several settings.
        of_kind = [
            each
            for each in found
            if any(field.default == part for field in each.model_fields.values())
        ]
        found = inner or of_kind or found
    return [field.alias or name for each in found for name, field in each.model_fields.items()]


def _list_settings(base: type[Config]) -> Iterator[type[Config]]:
    for each in base.__subclasses__():
        yield each
        yield from _list_settings(each)


def _find_settings(annotation: object) -> Iterator[type[Config]]:
    """Find the settings in the type of a field."""
    if isinstance(annotation, type) and issubclass(annotation, Config):
        yield annotation
    for part in get_args(annotation):
        yield from _find_settings(part)
