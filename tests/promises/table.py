"""The table of promises in docs/promises.md, written from what `make promises` recorded.

    python -m tests.promises.table

puts it between its markers.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.promises.figures import RECORDS, Figure

MANUAL = Path(__file__).parents[2] / "docs" / "promises.md"
BEGIN, END = "<!-- promises: python -m tests.promises.table -->\n", "<!-- end of promises -->\n"

PROMISES = {
    "R1": "100 activations and rollbacks under load, two processes: no request fails, each answer "
    "is one version's; p99 ≤ 3 times the steady one; memory ≤ 1.15 times",
    "R2": "a broken bundle is refused with 409, and the old version serves on",
    "R3": "kill -9 during ingest, and a database stopped at once: no acknowledged event is lost, "
    "none is there twice after a replay",
    "R4": "SIGTERM under load: not ready first, nothing in flight fails, gone within 10 s with 0",
    "R5": "hostile and random requests to every operation: no 5xx, no undocumented answer",
    "R6": "a body of 1 GiB is 413 within 50 MB, a gzip bomb is refused, slow connections harm "
    "nobody",
    "R7": "database away: inline histories are answered, the rest is 503, well again within 5 s; "
    "disk full and pool exhausted are 503, too",
    "R8": "at three times what it can bear: the excess is turned away, p99 of the rest ≤ 3 times",
    "R9": "100,000 requests: memory grows < 1 % in 10,000; no file or thread is left behind",
    "R10": "the same version and request: the same ids, scores within 1e-5, whoever answers",
    "R11": "neither order of arrival, nor later events, nor duplicates matter; attention sums to 1",
    "R12": "every operation answers every kind of caller as declared",
    "R13": "migrations go up, down and up; the release before runs on the newest schema",
    "R14": "an erased user is in no table, no training set and no output",
    "R15": "retraining killed in each phase leaves the champion alone; of two at once, one runs",
    "R16": "the gate refuses shuffled labels, NaN and what popularity beats, and says why",
}
"""What is promised, in a line each."""


def table(records: Path = RECORDS) -> str:
    """Every promise with what was measured of it last, or that it was not yet."""
    lines = ["| | promise | tried | measured | when, on what |", "| --- | --- | --- | --- | --- |"]
    for promise, told in PROMISES.items():
        file = records / f"R{int(promise[1:]):02}.json"
        known = json.loads(file.read_text("utf-8")) if file.exists() else {}
        cells = list(_cells(known)) or [("", "not yet measured", "")]
        for number, (tried, measured, where) in enumerate(cells):
            first = (promise, told) if number == 0 else ("", "")
            lines.append("| " + " | ".join((*first, tried, measured, where)) + " |")
    return "\n".join(line.replace("|  |", "| |").replace("|  |", "| |") for line in lines) + "\n"


def within(document: str, new: str) -> str:
    """A document with a new table between the markers."""
    before, begin, rest = document.partition(BEGIN)
    _, end, after = rest.partition(END)
    assert begin, f"{MANUAL} has no line {BEGIN!r}"
    assert end, f"{MANUAL} has no line {END!r}"
    return before + begin + new + end + after


def _cells(known: dict[str, dict[str, Any]]) -> Iterator[tuple[str, str, str]]:
    for tried, record in known.items():
        figures = ", ".join(
            f"{name.replace('_', ' ')} {_shown(figure)}"
            for name, figure in record["figures"].items()
        )
        yield tried, figures, f"{record['measured_on']}, {record['device']}"


def _shown(figure: Figure) -> str:
    if isinstance(figure, bool) or figure is None:
        return {True: "yes", False: "no", None: "none"}[figure]
    if isinstance(figure, float):
        return f"{figure:.4g}"
    return f"{figure:,}" if isinstance(figure, int) else figure


if __name__ == "__main__":
    MANUAL.write_text(within(MANUAL.read_text("utf-8"), table()), "utf-8")
