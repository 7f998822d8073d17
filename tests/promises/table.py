"""The table of promises in docs/promises.md, from the records of `make promises`.

    python -m tests.promises.table

replaces the text between its markers.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.promises.claims import CLAIMS
from tests.promises.figures import RECORDS, Figure

MANUAL = Path(__file__).parents[2] / "docs" / "promises.md"
BEGIN, END = "<!-- promises: python -m tests.promises.table -->\n", "<!-- end of promises -->\n"


def render_table(records: Path = RECORDS) -> str:
    """Render every promise with its last measurements, or "not yet measured".

    A figure that was measured when the promise claimed something else is marked with that claim.
    """
    lines = ["| | promise | tried | measured | when, on what |", "| --- | --- | --- | --- | --- |"]
    for promise, claim in CLAIMS.items():
        file = records / f"R{int(promise[1:]):02}.json"
        measurements = json.loads(file.read_text("utf-8")) if file.exists() else {}
        cells = list(_render_cells(measurements, claim)) or [("", "not yet measured", "")]
        for number, (tried, measured, where) in enumerate(cells):
            first = (promise, claim) if number == 0 else ("", "")
            lines.append("| " + " | ".join((*first, tried, measured, where)) + " |")
    return "\n".join(line.replace("|  |", "| |").replace("|  |", "| |") for line in lines) + "\n"


def replace_table(document: str, new: str) -> str:
    """Replace the table between the markers of a document."""
    before, begin, rest = document.partition(BEGIN)
    _, end, after = rest.partition(END)
    assert begin, f"{MANUAL} has no line {BEGIN!r}"
    assert end, f"{MANUAL} has no line {END!r}"
    return before + begin + new + end + after


def _render_cells(records: dict[str, dict[str, Any]], claim: str) -> Iterator[tuple[str, str, str]]:
    for tried, record in records.items():
        figures = ", ".join(
            f"{name.replace('_', ' ')} {_format_figure(figure)}"
            for name, figure in record["figures"].items()
        )
        where = f"{record['measured_on']}, {record['device']}"
        if record["claim"] != claim:
            where += f"; not yet measured since it claimed: {record['claim']}"
        yield tried, figures, where


def _format_figure(figure: Figure) -> str:
    if isinstance(figure, bool) or figure is None:
        return {True: "yes", False: "no", None: "none"}[figure]
    if isinstance(figure, float):
        return f"{figure:.4g}"
    return f"{figure:,}" if isinstance(figure, int) else figure


if __name__ == "__main__":
    MANUAL.write_text(replace_table(MANUAL.read_text("utf-8"), render_table()), "utf-8")
