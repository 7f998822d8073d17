"""A recommendation as the TOML of a recipe."""

import json
import textwrap

from training.inspection.action_names import escape_unprintable
from training.inspection.recommendation import Reason, Recommendation, Value

_LINE = 100


def format_recipe(recommendation: Recommendation, header: str) -> str:
    """Format a recommendation as the TOML of a recipe, with each reason as a comment.

    Args:
        header: the comment at the top.
    """
    tables: dict[str, list[Reason]] = {}
    for one in recommendation.reasons:
        tables.setdefault(one.setting.rpartition(".")[0], []).append(one)
    lines = _wrap_comment(header)
    for table, reasons in tables.items():
        lines += ["", f"[{table}]"]
        for number, one in enumerate(reasons):
            # A reason that several settings share is written once.
            if number == 0 or reasons[number - 1].reason != one.reason:
                lines += _wrap_comment(one.reason)
            lines.append(f"{one.setting.rpartition('.')[2]} = {format_value(one.value)}")
    return "\n".join(lines) + "\n"


def format_value(value: Value) -> str:
    """Format a value as TOML."""
    # TOML allows no DEL in a text, JSON does.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _wrap_comment(text: str) -> list[str]:
    lines = textwrap.wrap(
        text, _LINE, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False
    )
    # TOML allows no control characters in a comment.
    return [escape_unprintable(line) for line in lines]
