"""The numbers that the zoo reached, for its page: one line per method, one column per data set."""

import statistics
from collections.abc import Iterator
from pathlib import Path

from benchmarks.papers.harness.results import best, read_measured
from benchmarks.papers.harness.suite import Suite
from benchmarks.papers.harness.table import figure, line

SUITES = ("stackoverflow", "ml100k", "ml1m-subset")

OPENING, CLOSING = "<!-- numbers reached -->", "<!-- rendered from the records -->"
"""What the table stands between on the page."""


def reached(folder: Path) -> str:
    """The mean over seeds of the metric that each suite draws, the best of a column in bold.

    Args:
        folder: where suites/ and results/ are.
    """
    suites = [Suite.read(folder / "suites" / f"{name}.toml") for name in SUITES]
    labels: dict[str, str] = {}
    columns: list[dict[str, str]] = []
    for suite in suites:
        measured = read_measured(folder, suite)
        column: dict[str, str] = {}
        first = best(measured, suite.plot)
        for each in measured:
            labels.setdefault(each.row.name, each.row.label)
            told = figure(suite, statistics.mean(each.given(suite.plot)))
            column[each.row.name] = f"**{told}**" if each is first else told
        columns.append(column)
    heads = [f"{suite.title.split(':')[0]}, {suite.plot}" for suite in suites]
    lines = [line(["method", *heads]), line(["---", *["---:"] * len(heads)])]
    for name, label in labels.items():
        lines.append(line([label, *(column.get(name, "") for column in columns)]))
    return "\n".join(lines)


def with_numbers(page: str, folder: Path) -> str:
    """The page with its table brought up to date."""
    before, _, rest = page.partition(OPENING)
    _, _, after = rest.partition(CLOSING)
    return f"{before}{OPENING}\n\n{reached(folder)}\n\n{CLOSING}{after}"


def kinds_reached(folder: Path) -> set[str]:
    """The kinds of encoders and time encodings that have a number."""
    return set(_kinds(folder))


def _kinds(folder: Path) -> Iterator[str]:
    for name in SUITES:
        suite = Suite.read(folder / "suites" / f"{name}.toml")
        for each in read_measured(folder, suite):
            encoder = suite.config(each.row, each.records[0].seed).encoder
            yield encoder.kind
            time_encoding = getattr(encoder, "time_encoding", None)
            if time_encoding is not None:
                yield time_encoding.kind
