"""Sentences about results whose figures come from the records.

A text names a figure in braces, and the page shows its value:

    {kairos}                     the suite's plot metric on all questions, mean over seeds
    {kairos after_a_gap}         on the questions after a gap
    {kairos withheld}, {.. live} without the query time; with live popularity
    {kairos repeats}, {.. new_items}  the recall@10 of targets in the history; of the others
    {kairos mrr}                 another metric of the suite
    {kairos - mercer}            a difference on all questions, with its 95 % interval
    {kairos - mercer after_a_gap}
    {kairos / counting}          a ratio
    {kairos cpu}                 processor seconds per run

Rows and references have the names of the suite and of reports. So no figure on a page can differ
from its record.
"""

import re
import statistics
from collections.abc import Mapping
from types import MappingProxyType
from typing import get_args

from benchmarks.papers.harness.comparison import Comparison
from benchmarks.papers.harness.measured_rows import MeasuredRow, Subset, collect_references
from benchmarks.papers.harness.references import REFERENCES
from benchmarks.papers.harness.suite import Suite
from benchmarks.papers.pages.figures import format_figure, format_lead
from model.errors import TrainingError
from training.evaluation.counting import COUNTING_LIVE

_FIGURE = re.compile(r"\{([^{}]*)\}")


def fill_in_figures(
    text: str,
    suite: Suite,
    measured: list[MeasuredRow],
    comparison: Comparison | None,
    comparisons: Mapping[str, Comparison] = MappingProxyType({}),
) -> str:
    """Replace every figure in braces by its value.

    Args:
        comparison: of all rows and references.
        comparisons: of single rows with the runs of another that they are compared with; a
            difference to such a row is taken from there.

    Returns:
        The text; empty while a row that it names has no record.

    Raises:
        TrainingError: if there is no such row, metric or part.
    """
    if _list_unrecorded(text, suite, measured, comparison):
        return ""

    def fill(found: re.Match[str]) -> str:
        words = found[1].split()
        try:
            match words:
                case [name]:
                    return format_figure(suite, _average(suite, measured, name))
                case [name, "cpu"]:
                    return f"{_average_cost(measured, name):.0f}"
                case [name, "/", other]:
                    ratio = _average(suite, measured, name) / _average(suite, measured, other)
                    return f"{ratio:.2f}"
                case [name, "-", other, *subset] if comparison is not None:
                    apart = [comparisons[each] for each in (name, other) if each in comparisons]
                    used = apart[0] if len(apart) == 1 else comparison
                    return format_lead(suite, used.compare(name, other, _parse_subset(subset)))
                case [name, "repeats" | "new_items" as part] if comparison is not None:
                    recalls = comparison.list_recalls(name, part)
                    return format_figure(suite, statistics.mean(recalls))
                case [name, part]:
                    return format_figure(suite, _average(suite, measured, name, part))
        except (
            KeyError,
            StopIteration,
            TrainingError,
            ZeroDivisionError,
            statistics.StatisticsError,
        ):
            pass
        raise _refuse(suite, found[1])

    return _FIGURE.sub(fill, text)


def check_figures(suite: Suite) -> None:
    """Check the figures that the texts of a suite name, before anything is trained.

    Raises:
        TrainingError: if there is no such row, reference, metric or part.
    """
    rows = {row.name for row in suite.rows}
    names = rows | {*REFERENCES}
    # Counting up to each question is compared with live models, which is a column of its own.
    compared = names - {COUNTING_LIVE}
    subsets = ([], *([each] for each in get_args(Subset)))
    for figure in _FIGURE.findall(f"{suite.findings} {suite.limits}"):
        match figure.split():
            case [name] if name in names:
                continue
            case [name, "/", other] if {name, other} <= names:
                continue
            case [name, "-", other, *subset] if {name, other} <= compared and subset in subsets:
                continue
            case [name, "after_a_gap" | "withheld" | "cpu"] if name in rows:
                continue
            case [name, "live"] if name in rows and _counts_live(suite, name):
                continue
            case [name, "repeats" | "new_items"] if name in compared and not suite.excludes_seen:
                continue
            case [name, metric] if name in names and metric in suite.metrics:
                continue
        raise _refuse(suite, figure)


def _refuse(suite: Suite, figure: str) -> TrainingError:
    return TrainingError(
        f"a figure in the findings or limits of suite {suite.name} names rows and their metrics, "
        f"but {{{figure}}} does not; correct it, as `benchmarks.papers.pages.findings` describes"
    )


def _counts_live(suite: Suite, name: str) -> bool:
    """Return whether a row has a wide part, whose popularity can count up to each question."""
    row = suite.row(name)
    if row.recipe == "recommended" and suite.recommended is None:
        return True  # not known before the recipe is
    return row.peer is None and "wide" in suite.merge_settings(row, row.seeds[0])


def _list_unrecorded(
    text: str, suite: Suite, measured: list[MeasuredRow], comparison: Comparison | None
) -> list[str]:
    """List the rows that a text names and that have no record, or none that can be compared."""
    recorded = {each.row.name for each in measured}
    rows = {row.name for row in suite.rows}
    missing = []
    for figure in _FIGURE.findall(text):
        first, rest = figure.split()[:1], figure.split()[1:]
        names = {*first, *rest[1:2]} if rest[:1] in (["-"], ["/"]) else {*first}
        missing += sorted(names & rows - recorded)
        is_of_ranks = rest[:1] in (["-"], ["repeats"], ["new_items"])
        if is_of_ranks and comparison is not None:
            missing += [name for name in sorted(names & recorded) if not comparison.has(name)]
        elif is_of_ranks:
            missing += sorted(names)
    return missing


def _average(
    suite: Suite, measured: list[MeasuredRow], name: str, part: str | None = None
) -> float:
    references = collect_references(measured)
    if name in references:
        return references[name][part or suite.plot]
    row = next(each for each in measured if each.row.name == name)
    match part:
        case None:
            return statistics.mean(row.list_given(suite.plot))
        case "withheld":
            return statistics.mean(row.list_withheld(suite.plot))
        case "live":
            return statistics.mean(row.list_live(suite.plot))
        case "after_a_gap":
            return statistics.mean(row.list_after_gap("model", suite.plot))
        case _:
            return statistics.mean(row.list_given(part))


def _average_cost(measured: list[MeasuredRow], name: str) -> float:
    row = next(each for each in measured if each.row.name == name)
    return statistics.mean(record.cpu_seconds for record in row.records)


def _parse_subset(words: list[str]) -> Subset:
    subsets: dict[str, Subset] = {name: name for name in get_args(Subset)}
    return subsets[words[0]] if words else "all"
