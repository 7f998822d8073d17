"""The table of results in docs/models.md: one row per method, one column per data set."""

import statistics
from collections.abc import Iterator
from pathlib import Path

from benchmarks.papers.harness.figures import format_figure, format_row
from benchmarks.papers.harness.measured_rows import read_measured
from benchmarks.papers.harness.suite import Suite

SUITES = ("stackoverflow", "ml100k", "ml1m-by-time", "retail", "complete-journey", "yelp")

OPENING, CLOSING = "<!-- numbers reached -->", "<!-- rendered from the records -->"
"""The markers around the table on the page."""


def render_models_table(folder: Path) -> str:
    """Render the mean over seeds of each suite's plot metric on its headline questions.

    What differs by an interval that leaves out zero is in the tables of the suites.

    Args:
        folder: of suites/ and results/.
    """
    suites = [Suite.read(folder / "suites" / f"{name}.toml") for name in SUITES]
    labels: dict[str, str] = {}
    columns: list[dict[str, str]] = []
    for suite in suites:
        measured = read_measured(folder, suite)
        column: dict[str, str] = {}
        for each in measured:
            if each.row.role == "peer":
                continue
            labels.setdefault(each.row.name, each.row.label)
            mean = statistics.mean(each.list_headline(suite, suite.plot))
            column[each.row.name] = format_figure(suite, mean)
        columns.append(column)
    heads = [
        f"{suite.title.split(':')[0]}, {suite.plot}"
        + (", after a gap" if suite.headline == "after_a_gap" else "")
        for suite in suites
    ]
    lines = [format_row(["method", *heads]), format_row(["---", *["---:"] * len(heads)])]
    for name, label in labels.items():
        lines.append(format_row([label, *(column.get(name, "") for column in columns)]))
    return "\n".join(lines)


def update_models_table(page: str, folder: Path) -> str:
    """Replace the table of results in docs/models.md."""
    before, _, rest = page.partition(OPENING)
    _, _, after = rest.partition(CLOSING)
    return f"{before}{OPENING}\n\n{render_models_table(folder)}\n\n{CLOSING}{after}"


def find_measured_kinds(folder: Path) -> set[str]:
    """Find the kinds of encoders and time encodings that have a result."""
    return set(_list_kinds(folder))


def _list_kinds(folder: Path) -> Iterator[str]:
    for name in SUITES:
        suite = Suite.read(folder / "suites" / f"{name}.toml")
        for each in read_measured(folder, suite):
            if each.row.role == "peer":
                continue
            encoder = suite.build_config(each.row, each.records[0].seed).encoder
            yield encoder.kind
            time_encoding = getattr(encoder, "time_encoding", None)
            if time_encoding is not None:
                yield time_encoding.kind
