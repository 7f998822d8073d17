"""What is wrong with settings, a suite or a record, in words."""

import difflib
import re
from collections.abc import Iterator

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
    return ", ".join(f"{_format_place(each, rows)}{_format_problem(each)}" for each in problems)


def end_with_remedy(problem: str) -> str:
    """Append "correct it" to a problem that ends without a remedy."""
    return problem if "; " in problem else f"{problem}; correct it"


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
    """Format one problem: in lower case with its value; for an unknown name the nearest known."""
    context, value = problem.get("ctx", {}), problem["input"]
    match problem["type"]:
        case "union_tag_invalid":
            known = re.findall(r"'([^']+)'", context["expected_tags"])
            tag, field = context["tag"], context["discriminator"]
            hint = _suggest(tag, known) or f"; known are {known}"
            return f"input tag {tag!r} found using {field} is not known{hint}"
        case "extra_forbidden":
            name, known = str(problem["loc"][-1]), [*_list_fields(Config)]
            # A known name in the wrong place is no misspelling.
            return f"there is no such setting here{'' if name in known else _suggest(name, known)}"
        case "missing":
            return "it is missing"
        case "value_error":  # of our own validators, which name value and remedy
            return str(context["error"])
    message = problem["msg"][0].lower() + problem["msg"][1:]
    if isinstance(value, str | int | float) and len(repr(value)) <= LONGEST_VALUE:
        message += f", but got {value!r}"
    return message


def _suggest(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def _list_fields(config: type[Config]) -> Iterator[str]:
    """List the names of the fields of all settings that are imported."""
    for each in config.__subclasses__():
        yield from (field.alias or name for name, field in each.model_fields.items())
        yield from _list_fields(each)
