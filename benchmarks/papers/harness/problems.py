"""What is wrong with a suite, a recipe or a record, in words."""

import difflib
import re

from pydantic import JsonValue, ValidationError
from pydantic_core import ErrorDetails


def format_problems(error: ValueError, rows: JsonValue = None) -> str:
    """Format what is wrong with a suite, a recipe or a record, in one line, without its content.

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
    """Format one problem: in lower case, and for an unknown kind the nearest known one."""
    context = problem.get("ctx", {})
    if problem["type"] == "union_tag_invalid":
        known = re.findall(r"'([^']+)'", context["expected_tags"])
        near = difflib.get_close_matches(context["tag"], known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known are {known}"
        tag, field = context["tag"], context["discriminator"]
        return f"input tag {tag!r} found using {field} is not known; {hint}"
    return problem["msg"][0].lower() + problem["msg"][1:]
