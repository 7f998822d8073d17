"""The page that sums up all suites: the default against references, rivals, peers and controls."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.papers.harness.comparison import Comparison, Lead
from benchmarks.papers.harness.findings import fill_in_figures, format_lead
from benchmarks.papers.harness.results import MeasuredRow, collect_references, read_measured
from benchmarks.papers.harness.suite import Suite
from benchmarks.papers.harness.table import REFERENCES, find_default, format_figure, format_row
from training.evaluation.counting import COUNTING_LIVE

COLUMNS = ("reference", "rival", "peer", "method", "control")
"""Kinds of opponents, in the order of the page."""

README_OPENING, README_CLOSING = "<!-- results -->", "<!-- rendered from the records -->"
"""The markers around the table in the README."""

OPENING = """\
# Is it good?

This page is rendered from the [records](../benchmarks/papers/README.md) by `kairos bench papers
--render`; every figure on it is computed from them. The default is the recipe that `kairos inspect`
recommends for a data set, without any search on it. A lead is the mean difference of one metric on
the same test questions, with its 95 % interval: users are resampled with all their questions, and
so are the seeds of both sides. *Ahead* and *behind* are said only where the interval leaves out
zero.
"""


class Opponent(NamedTuple):
    """A row or reference beside the default, and the default's lead over it."""

    name: str
    label: str
    kind: str
    """A role of a row, or reference."""
    mean: float
    """Its own metric, on the suite's headline questions."""
    lead: Lead

    @property
    def relative(self) -> Lead:
        """The lead as a share of the opponent's own figure."""
        return Lead(*(value / self.mean for value in self.lead))


class SuiteResult(NamedTuple):
    """The default of one suite and its opponents, the best of each kind first."""

    suite: Suite
    measured: list[MeasuredRow]
    comparison: Comparison
    default: MeasuredRow
    opponents: list[Opponent]

    def find_best(self, kind: str) -> Opponent | None:
        """Find the opponent of a kind with the best figure."""
        return next((each for each in self.opponents if each.kind == kind), None)


def read_results(folder: Path) -> list[SuiteResult]:
    """Read the suites whose default has a record, and compare it with everything else.

    Args:
        folder: of suites/ and results/.
    """
    found = []
    for file in sorted((folder / "suites").glob("*.toml")):
        suite = Suite.read(file)
        measured = read_measured(folder, suite)
        comparison = Comparison.read(folder, suite, measured)
        default = find_default(measured)
        if comparison is None or default is None or not comparison.has(default.row.name):
            continue
        opponents = [
            Opponent(
                name,
                label,
                kind,
                comparison.resample(name, suite.headline).mean,
                comparison.compare(default.row.name, name, suite.headline),
            )
            for name, label, kind in _list_opponents(measured, comparison)
        ]
        opponents.sort(key=lambda each: -each.mean)
        found.append(SuiteResult(suite, measured, comparison, default, opponents))
    return found


def render_results_page(results: Sequence[SuiteResult], folder: Path) -> str:
    """Render the page: first where the default is not ahead, then the picture and the table.

    Args:
        folder: of suites/, to name those without a result.
    """
    shown = {result.suite.name for result in results}
    suites = [Suite.read(file) for file in sorted((folder / "suites").glob("*.toml"))]
    missing = [
        suite.title
        for suite in suites
        if suite.name not in shown and any(row.recipe == "recommended" for row in suite.rows)
    ]
    parts = [
        OPENING,
        "## Where Kairos is not ahead\n",
        *(_render_limits(result) for result in results),
        *[f"Without comparable records of the default: {'; '.join(missing)}.\n"] * bool(missing),
        "## In one picture\n",
        "![Leads of the default on every data set](../benchmarks/papers/plots/leads.svg)\n",
        "The default's lead in percent of the other's own figure: over the best reference that\n"
        "counts, over every rival and peer, and over the controls. Dots to the right of the line\n"
        "are behind the default.\n",
        "## In figures\n",
        _render_table(results),
        "",
        "Figures are of frozen popularity and with the query time given, as in deployment between\n"
        "two trainings; what changes with live popularity or without the query time is in the\n"
        "[tables](../benchmarks/papers/README.md), with learning curves and costs.\n",
    ]
    return "\n".join(parts)


def update_readme(page: str, results: Sequence[SuiteResult]) -> str:
    """Replace the table of results in the README; a page without the markers stays."""
    if README_OPENING not in page:
        return page
    before, _, rest = page.partition(README_OPENING)
    _, _, after = rest.partition(README_CLOSING)
    table = _render_table(results, ("reference", "rival", "peer"))
    return f"{before}{README_OPENING}\n\n{table}\n\n{README_CLOSING}{after}"


def _list_opponents(
    measured: list[MeasuredRow], comparison: Comparison
) -> list[tuple[str, str, str]]:
    """List names, labels and kinds; live counting is left out, since it reads another input."""
    references = [
        (name, REFERENCES.get(name, name), "reference")
        for name in collect_references(measured)
        if name != COUNTING_LIVE and name in comparison.questions.references
    ]
    rows = [
        (each.row.name, each.row.label, each.row.role)
        for each in measured
        if each.row.role != "default" and comparison.has(each.row.name)
    ]
    return references + rows


def _render_limits(result: SuiteResult) -> str:
    suite = result.suite
    rivals = [each for each in result.opponents if each.kind in ("reference", "rival", "peer")]
    behind = [each for each in rivals if each.lead.high < 0]
    level = [each for each in rivals if each.lead.low <= 0 <= each.lead.high]
    sentences = [f"Behind {_list_leads(suite, behind)}."] * bool(behind)
    sentences += [f"Not shown to be ahead of {_list_leads(suite, level)}."] * bool(level)
    if not sentences:
        kinds = {each.kind for each in rivals}
        names = ", ".join(f"{kind}s" for kind in COLUMNS if kind in kinds)
        sentences = [f"Ahead of all {len(rivals)} {names}."]
    why = fill_in_figures(
        suite.limits.strip(),
        suite,
        result.measured,
        result.comparison,
        lambda value: format_figure(suite, value),
    )
    title, _, task = suite.title.partition(":")
    return f"- **{title}**,{task}: {' '.join([*sentences, why]).strip()}\n"


def _list_leads(suite: Suite, opponents: list[Opponent]) -> str:
    return "; ".join(
        f"{each.label}, {format_lead(each.lead, lambda value: format_figure(suite, value))}"
        for each in opponents
    )


def _render_table(results: Sequence[SuiteResult], kinds: Sequence[str] = COLUMNS) -> str:
    head = ["data set", "metric", "default", *(f"best {kind}" for kind in kinds)]
    lines = [format_row(head), format_row(["---", "---", "---:", *["---"] * len(kinds)])]
    for result in results:
        suite = result.suite
        gap = ", after a gap" if suite.headline == "after_a_gap" else ""
        own = result.comparison.resample(result.default.row.name, suite.headline).mean
        cells = [suite.title, f"{suite.plot}{gap}", format_figure(suite, own)]
        for kind in kinds:
            best = result.find_best(kind)
            cells.append("" if best is None else _format_opponent(suite, best))
        lines.append(format_row(cells))
    return "\n".join(lines)


def _format_opponent(suite: Suite, opponent: Opponent) -> str:
    lead = format_lead(opponent.lead, lambda value: format_figure(suite, value))
    return f"{opponent.label} {format_figure(suite, opponent.mean)}; lead {lead}"
