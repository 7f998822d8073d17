"""What is wrong with a suite, a recipe or a record, in words."""

import difflib
import re

from pydantic import JsonValue, ValidationError
from pydantic_core import ErrorDetails

LONGEST_VALUE = 40
"""Characters of a value that is shown."""


def format_problems(error: ValueError | OSError, rows: JsonValue = None) -> str:
    """Format what is wrong with a suite, a recipe or a record, in one line, with short values only.

    Args:
        rows: of the suite, as in its file, to name one by its name instead of its number.
    """
    if not isinstance(error, ValidationError):
        return str(error)
    problems = error.errors(include_url=False)
    return ", ".join(f"{_format_place(each, rows)}{_format_problem(each)}" for each in problems)


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


def _format_problem(problem: ErrorDetails) -> str:
    """Format one problem: in lower case with its value; for an unknown kind the nearest known."""
    context = problem.get("ctx", {})
    if problem["type"] == "union_tag_invalid":
        known = re.findall(r"'([^']+)'", context["expected_tags"])
        near = difflib.get_close_matches(context["tag"], known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known are {known}"
        tag, field = context["tag"], context["discriminator"]
        return f"input tag {tag!r} found using {field} is not known; {hint}"
    message, value = problem["msg"][0].lower() + problem["msg"][1:], problem["input"]
    # Errors of our own validators name the value.
    is_shown = isinstance(value, str | int | float) and problem["type"] != "value_error"
    if is_shown and len(repr(value)) <= LONGEST_VALUE:
        message += f", but got {value!r}"
    return message
