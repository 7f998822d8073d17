"""The table of promises in docs/promises.md, from the records of `make promises`.

    python -m tests.promises.table

replaces the text between its markers.
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
    "R2": "a broken bundle is refused with 409, and the old version stays active",
    "R3": "kill -9 during ingest, and a database stopped at once: no acknowledged event is lost, "
    "none is there twice after a replay",
    "R4": "SIGTERM under load: not ready first, nothing in flight fails, gone within 10 s with 0",
    "R5": "hostile and random requests to every operation: no 5xx, no undocumented answer",
    "R6": "a body of 1 GiB is 413 within 50 MB, a gzip bomb is refused, slow connections delay "
    "no other client; idle and slow ones exhaust no process without a proxy either",
    "R7": "without a database: inline histories are answered, the rest is 503, "
    "recovery within 5 s; disk full and pool exhausted are 503, too",
    "R8": "at three times its capacity: the excess is shed, p99 of the rest ≤ 3 times "
    "(median of three rounds)",
    "R9": "100,000 requests: memory grows < 1 % in 10,000; no file or thread is left behind",
    "R10": "the same version, counted events and request: the same ids, scores within 1e-5, in "
    "every process",
    "R11": "neither order of arrival, nor that within an instant, nor later events, nor duplicates "
    "matter; attention sums to 1",
    "R12": "every operation authorizes every kind of caller as declared",
    "R13": "migrations go up, down and up; the release before runs on the newest schema",
    "R14": "an erased user is in no table, no training set and no output",
    "R15": "retraining killed in each phase leaves the champion alone; of two at once, one runs",
    "R16": "the gate refuses shuffled labels, NaN and models below popularity, with the reason",
    "R17": "no class of requests starves another: beside ten times the sweeps that fit, "
    "recommendations and ingestion keep p99 ≤ 3 times and fail 0 times",
    "R18": "PostgreSQL becomes read-only and back, or a standby takes over: writes are 503, no "
    "acknowledged event and no impression is lost, recovery within 5 s without a restart",
    "R19": "the clock of one replica an hour off changes no answer: default query times, "
    "availability, deletions, events, keys, erasures, popularity and versions",
    "R20": "behind nginx, Caddy and HAProxy with their defaults, a service without keys admits "
    "nobody from outside",
    "R21": "a week of everything at once (events, answers, swaps, erasures, restarts, backups, "
    "retraining): every acknowledged event once, no erased user, memory and files flat",
}
"""The promises, one line each."""


def render_table(records: Path = RECORDS) -> str:
    """Render every promise with its last measurements, or "not yet measured"."""
    lines = ["| | promise | tried | measured | when, on what |", "| --- | --- | --- | --- | --- |"]
    for promise, description in PROMISES.items():
        file = records / f"R{int(promise[1:]):02}.json"
        measurements = json.loads(file.read_text("utf-8")) if file.exists() else {}
        cells = list(_render_cells(measurements)) or [("", "not yet measured", "")]
        for number, (tried, measured, where) in enumerate(cells):
            first = (promise, description) if number == 0 else ("", "")
            lines.append("| " + " | ".join((*first, tried, measured, where)) + " |")
    return "\n".join(line.replace("|  |", "| |").replace("|  |", "| |") for line in lines) + "\n"


def replace_table(document: str, new: str) -> str:
    """Replace the table between the markers of a document."""
    before, begin, rest = document.partition(BEGIN)
    _, end, after = rest.partition(END)
    assert begin, f"{MANUAL} has no line {BEGIN!r}"
    assert end, f"{MANUAL} has no line {END!r}"
    return before + begin + new + end + after


def _render_cells(records: dict[str, dict[str, Any]]) -> Iterator[tuple[str, str, str]]:
    for tried, record in records.items():
        figures = ", ".join(
            f"{name.replace('_', ' ')} {_format_figure(figure)}"
            for name, figure in record["figures"].items()
        )
        yield tried, figures, f"{record['measured_on']}, {record['device']}"


def _format_figure(figure: Figure) -> str:
    if isinstance(figure, bool) or figure is None:
        return {True: "yes", False: "no", None: "none"}[figure]
    if isinstance(figure, float):
        return f"{figure:.4g}"
    return f"{figure:,}" if isinstance(figure, int) else figure


if __name__ == "__main__":
    MANUAL.write_text(replace_table(MANUAL.read_text("utf-8"), render_table()), "utf-8")
