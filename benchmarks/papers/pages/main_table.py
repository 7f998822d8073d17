"""The main table of a suite: metrics, leads and costs of its references and rows."""

import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import final

from benchmarks.papers.harness.comparison import Comparison
from benchmarks.papers.harness.measured_rows import (
    MeasuredRow,
    collect_references,
    find_default,
)
from benchmarks.papers.harness.references import REFERENCES
from benchmarks.papers.harness.row import Row
from benchmarks.papers.harness.suite import Suite
from benchmarks.papers.pages.figures import (
    format_figure,
    format_lead,
    format_row,
    format_spread,
    name_headline,
    name_metric,
)
from training.evaluation.counting import COUNTING_LIVE
from training.evaluation.report import LIVE, MODEL

COSTS = ("seeds", "parameters", "CPU s / run", "CPU s of trials")
"""The last columns, which references leave empty."""


@final
@dataclass(frozen=True)
class MainTable:
    """The main table of a suite; references first, then its rows."""

    suite: Suite
    measured: list[MeasuredRow]
    comparison: Comparison | None
    """Of the same rows; without one no leads are shown, and no row is marked."""

    def render(self) -> str:
        """Render the table, in Markdown."""
        return "\n".join(
            [
                *self._render_head(),
                *self._render_references(),
                *map(self._render_row, self.measured),
            ]
        )

    def _render_head(self) -> tuple[str, str]:
        texts, figures = ["model", "role", "reads"], self._name_figures()
        published = ["published"] * self._has_published
        return (
            format_row([*texts, *figures, *COSTS, *published]),
            format_row(
                ["---"] * len(texts)
                + ["---:"] * (len(figures) + len(COSTS))
                + ["---"] * len(published)
            ),
        )

    def _name_figures(self) -> list[str]:
        """Name the columns of metrics and leads."""
        suite = self.suite
        names = [name_headline(suite, name_metric(suite, metric)) for metric in self._metrics]
        names += [f"{name_metric(suite, suite.plot)}, all questions"] * self._is_after_gap
        return names + ["lead of the default"] * (self._default is not None)

    def _render_references(self) -> Iterator[str]:
        suite = self.suite
        headline = collect_references(self.measured, suite.headline)
        for name, figures in collect_references(self.measured).items():
            shown = headline.get(name, {})
            cells = [format_figure(suite, shown.get(metric)) for metric in self._metrics]
            cells += [format_figure(suite, figures.get(suite.plot))] * self._is_after_gap
            cells += [self._format_lead(name)] * (self._default is not None)
            cells += [""] * (len(COSTS) + self._has_published)
            yield format_row([REFERENCES.get(name, name), "reference", "", *cells])

    def _render_row(self, measured: MeasuredRow) -> str:
        suite, row = self.suite, measured.row
        mark = " †" * self._is_ahead_of_its_class(measured)
        cells = [
            format_spread(suite, measured.list_headline(suite, metric))
            + mark * (metric == suite.plot)
            for metric in self._metrics
        ]
        cells += [format_spread(suite, measured.list_given(suite.plot))] * self._is_after_gap
        if self._default is not None:
            cells.append("" if measured is self._default else self._format_lead(row.name))
        cells += _format_costs(measured)
        cells += [_format_published(suite, row)] * self._has_published
        return format_row([f"{row.label} `{row.name}`", row.role, row.time_class, *cells])

    @cached_property
    def _default(self) -> MeasuredRow | None:
        return find_default(self.measured) if self.comparison is not None else None

    @property
    def _has_published(self) -> bool:
        return any(each.row.published for each in self.measured)

    @property
    def _is_after_gap(self) -> bool:
        return self.suite.headline == "after_a_gap"

    @cached_property
    def _metrics(self) -> list[str]:
        """The metrics that are shown; questions after a gap have no candidates drawn for them."""
        return [
            metric
            for metric in self.suite.metrics
            if not self._is_after_gap
            or any(each.list_headline(self.suite, metric) for each in self.measured)
        ]

    def _format_lead(self, other: str) -> str:
        """Format the lead of the default; empty if it cannot be compared with the other."""
        comparison, default = self.comparison, self._default
        if comparison is None or default is None:
            return ""
        if not (comparison.has(default.row.name) and comparison.has(other)):
            return ""
        # Counting up to each question is compared with the default that does so, too.
        ranker = LIVE if other == COUNTING_LIVE else MODEL
        lead = comparison.compare(default.row.name, other, self.suite.headline, ranker)
        return format_lead(self.suite, lead)

    def _is_ahead_of_its_class(self, row: MeasuredRow) -> bool:
        """Return whether a row is ahead of all, two at least, that read the same of time.

        The interval of a trained row of one seed lacks the spread of its seeds, so none is marked.
        """
        comparison, headline = self.comparison, self.suite.headline
        others = [
            each.row.name
            for each in self.measured
            if each.row.time_class == row.row.time_class and each is not row
        ]
        if comparison is None or len(others) < 2 or row.is_of_one_seed:
            return False
        names = [row.row.name, *others]
        if not all(map(comparison.has, names)):
            return False
        means = {name: comparison.resample(name, headline).mean for name in names}
        if max(means, key=lambda name: means[name]) != row.row.name:
            return False
        return all(comparison.compare(row.row.name, each, headline).low > 0 for each in others)


def _format_costs(measured: MeasuredRow) -> list[str]:
    """Format the cells of `COSTS`."""
    first = measured.records[0]
    trials = ""
    if any(record.trials for record in measured.records):
        trials = f"{sum(record.choice_cpu_seconds for record in measured.records):,.0f}"
    return [
        str(len(measured.records)),
        # What is fitted by counting has no learned parameters, whatever its module holds.
        f"{first.parameters:,}" if first.epochs else "",
        f"{statistics.mean(record.cpu_seconds for record in measured.records):,.0f}",
        trials,
    ]


def _format_published(suite: Suite, row: Row) -> str:
    """Format the figures of a row's paper, and their source; empty if it has none."""
    if row.published is None:
        return ""
    several = len(row.published.figures) > 1
    figures = ", ".join(
        format_figure(suite, value) + (f" {metric}" if several else "")
        for metric, value in row.published.figures.items()
    )
    return f"{figures} ({row.published.source})"
