"""The result of a suite: the leads of the default over references and the other rows."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from benchmarks.papers.harness.comparison import Comparison
from benchmarks.papers.harness.measured_rows import MeasuredRow, Subset, find_default
from benchmarks.papers.harness.measured_suite import MeasuredSuite
from benchmarks.papers.harness.references import REFERENCES
from benchmarks.papers.harness.suite import Suite
from training.evaluation.metrics import Lead


class Opponent(NamedTuple):
    """A row or reference beside the default, and the default's lead over it."""

    name: str
    label: str
    role: str
    """The role of a row, or reference."""
    mean: float
    """Its own metric, on the suite's headline questions."""
    lead: Lead
    relative: Lead | None
    """The lead as a share of the opponent's own figure; None if that is zero, or if too few users
    have a question for an interval."""


@dataclass(frozen=True)
class SuiteResult:
    """The default of one suite and its opponents, the best of each role first."""

    measured_suite: MeasuredSuite
    comparison: Comparison
    default: MeasuredRow
    opponents: list[Opponent]
    """By the suite's headline questions."""

    @property
    def suite(self) -> Suite:
        """The suite that was measured."""
        return self.measured_suite.suite

    def of_all_questions(self) -> "SuiteResult":
        """Compare on all questions, whatever the headline is."""
        suite = self.suite.model_copy(update={"headline": "all"})
        measured_suite = replace(self.measured_suite, suite=suite)
        return _compare_default(measured_suite, self.comparison, self.default)

    def count_runs(self, role: str) -> tuple[int, int]:
        """Count the compared rows of a role, and all that the suite has."""
        run = sum(each.role == role for each in self.opponents)
        return run, sum(row.role == role for row in self.suite.rows)

    def find_best(self, role: str) -> Opponent | None:
        """Find the opponent of a role with the best figure."""
        return next((each for each in self.opponents if each.role == role), None)


def list_results(suites: Sequence[MeasuredSuite]) -> list[SuiteResult]:
    """Compare the default of every suite, where it has a record, with everything else."""
    results = []
    for each in suites:
        comparison, default = each.comparison, find_default(each.measured)
        if comparison is not None and default is not None and comparison.has(default.row.name):
            results.append(_compare_default(each, comparison, default))
    return results


def _compare_default(
    measured_suite: MeasuredSuite, comparison: Comparison, default: MeasuredRow
) -> SuiteResult:
    """Compare with everything else on the suite's headline questions, the best first."""
    opponents = [
        _compare_with(default, comparison, measured_suite.suite.headline, *opponent)
        for opponent in _list_opponents(measured_suite.measured, comparison)
    ]
    ordered = sorted(opponents, key=lambda each: -each.mean)
    return SuiteResult(measured_suite, comparison, default, ordered)


def _list_opponents(
    measured: list[MeasuredRow], comparison: Comparison
) -> list[tuple[str, str, str]]:
    """List names, labels and roles; live counting is left out, since it reads another input.

    Of references with equal ranks the first is listed: where seen items are left out, those that
    count a user's own items have nothing but popularity.
    """
    ranks = comparison.questions.references
    distinct = {ranks[name]: name for name in reversed(comparison.list_references())}
    references = [
        (name, REFERENCES.get(name, name), "reference") for name in reversed(distinct.values())
    ]
    rows = [
        (each.row.name, each.label, each.row.role)
        for each in measured
        if each.row.role != "default" and comparison.has(each.row.name)
    ]
    return references + rows


def _compare_with(
    default: MeasuredRow, comparison: Comparison, subset: Subset, name: str, label: str, role: str
) -> Opponent:
    mean = comparison.resample(name, subset).mean
    lead = comparison.compare(default.row.name, name, subset)
    return Opponent(
        name,
        label,
        role,
        mean,
        lead,
        comparison.compare_relative(default.row.name, name, subset)
        if mean and math.isfinite(lead.low)
        else None,
    )
