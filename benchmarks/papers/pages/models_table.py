"""The table of results in docs/models.md: one row per method, one column per data set."""

import statistics
from collections.abc import Iterator, Sequence

from benchmarks.papers.harness.measured_suite import MeasuredSuite
from benchmarks.papers.pages.figures import (
    format_figure,
    format_row,
    name_headline,
    replace_between,
)
from model.errors import TrainingError

SUITES = ("stackoverflow", "ml100k", "ml1m-by-time", "retail", "complete-journey", "yelp")

OPENING, CLOSING = "<!-- numbers reached -->", "<!-- rendered from the records -->"
"""The markers around the table on the page."""


def render_models_table(suites: Sequence[MeasuredSuite]) -> str:
    """Render the mean over seeds of each suite's plot metric on its headline questions.

    What differs by an interval that leaves out zero is in the tables of the suites.

    Args:
        suites: all, whose columns of the table are those of `SUITES`.
    """
    shown = _select_columns(suites)
    labels: dict[str, None] = {}  # A row of one name may be another model in another suite.
    columns: list[dict[str, str]] = []
    for measured_suite in shown:
        suite = measured_suite.suite
        column: dict[str, str] = {}
        for each in measured_suite.measured:
            if each.row.role == "peer":
                continue
            mean = statistics.mean(each.list_headline(suite, suite.plot))
            column[each.row.label] = format_figure(suite, mean)
        labels.update(dict.fromkeys(column))
        columns.append(column)
    heads = [
        f"{suite.title.split(':')[0]}, {name_headline(suite, suite.plot)}"
        for suite in (each.suite for each in shown)
    ]
    lines = [format_row(["method", *heads]), format_row(["---", *["---:"] * len(heads)])]
    for label in labels:
        lines.append(format_row([label, *(column.get(label, "") for column in columns)]))
    return "\n".join(lines)


def update_models_table(page: str, suites: Sequence[MeasuredSuite]) -> str:
    """Replace the table of results in docs/models.md.

    Raises:
        TrainingError: if a marker is missing, or a suite of `SUITES`.
    """
    return replace_between(page, OPENING, CLOSING, render_models_table(suites))


def find_measured_kinds(suites: Sequence[MeasuredSuite]) -> set[str]:
    """Find the kinds of encoders and time encodings that have a result."""
    return set(_list_kinds(suites))


def _select_columns(suites: Sequence[MeasuredSuite]) -> list[MeasuredSuite]:
    by_name = {each.suite.name: each for each in suites}
    if missing := [name for name in SUITES if name not in by_name]:
        raise TrainingError(
            f"the table of docs/models.md has a column for each of {[*SUITES]}, but there is no "
            f"suite {missing}; correct SUITES of benchmarks/papers/pages/models_table.py"
        )
    return [by_name[name] for name in SUITES]


def _list_kinds(suites: Sequence[MeasuredSuite]) -> Iterator[str]:
    for measured_suite in _select_columns(suites):
        for each in measured_suite.measured:
            if each.row.role == "peer":
                continue
            encoder = measured_suite.suite.build_config(each.row, each.records[0].seed).encoder
            yield encoder.kind
            time_encoding = getattr(encoder, "time_encoding", None)
            if time_encoding is not None:
                yield time_encoding.kind
