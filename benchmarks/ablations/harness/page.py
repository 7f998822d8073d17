"""The page of the ablations, in Markdown."""

import statistics
from pathlib import Path

from benchmarks.ablations.harness.ablations import (
    Ablations,
    changes,
    get_epochs,
    read_ablation,
)
from benchmarks.ablations.harness.effects import compare_with_whole
from benchmarks.papers.harness.comparison import Comparison
from benchmarks.papers.harness.measured_rows import MeasuredRow
from benchmarks.papers.harness.suite import Suite
from benchmarks.papers.pages.figures import format_figure, format_lead, format_row
from benchmarks.papers.pages.findings import fill_in_figures
from benchmarks.papers.pages.run_notes import format_runs
from training.evaluation.report import LIVE, MODEL, WITHHELD

RANKERS = {LIVE: "live", MODEL: "frozen", WITHHELD: "withheld"}

OPENING = """\
# What each part of the recommended recipe is worth

    kairos bench ablations --suite retail            # train rows without a record, then render
    kairos bench ablations --suite retail --rows full,no_drift --seeds 0,1,2
    kairos bench ablations --suite stackoverflow --epochs 1    # shorter runs, for a suite of such
    kairos bench ablations --render                  # this page, from the records

Each row changes one part of the recommended recipe ([ablations.toml](ablations.toml)); the suites
and their recipes are those of [the papers' tables](../papers/README.md). A row that changes nothing
for a data set, since its recipe does not have that part, is not run. There is no row without the
refit before the test: its catalog would lack the items of the validation events, so that it would
rank others.

- Live counts popularity up to each query, frozen up to the last training event; withheld is frozen
  without the query time.
- Differences are to the whole recipe with the same seeds and numbers of epochs, on the same
  questions; in brackets their 95 % interval, in bold where it leaves out zero: users are resampled,
  each with all questions, and so are the seeds. With one seed it has no spread between seeds.
"""


def render_ablations(folder: Path, papers: Path) -> str:
    """Render the page of all suites that have records.

    Args:
        folder: of ablations.toml and results/.
        papers: of suites/ and recommended/.
    """
    ablations = Ablations.read(folder)
    sections = [OPENING]
    for name in ablations.suites:
        suite = ablations.read_suite(name, papers)
        if measured := read_ablation(folder, suite):
            sections.append(f"## {suite.title}\n\n{render_ablation(folder, suite, measured)}\n")
    return "\n".join(sections)


def render_ablation(folder: Path, suite: Suite, measured: list[MeasuredRow]) -> str:
    """Render the table of one suite, and name the rows that it does not show.

    Args:
        folder: of results/.
    """
    whole = measured[0]
    if whole.row != suite.rows[0]:
        return f"Without a record of {suite.rows[0].label}, nothing can be compared."
    comparisons = compare_with_whole(folder, suite, measured)
    shown = [comparison.find(name) for name, comparison in comparisons.items()]
    head = [
        "",
        *(text for it in RANKERS.values() for text in (it, "difference")),
        "seeds",
        "CPU s / run",
    ]
    lines = [format_row(head), format_row(["---", *["---:"] * (len(head) - 1)])]
    lines += [_render_row(comparisons[each.row.name], each, whole.row.name) for each in shown]
    counts = sorted({get_epochs(run) for each in shown for run in each.records})
    epochs = " or ".join(map(str, counts))
    of_recipe = suite.build_config(whole.row, 0).fit.epochs
    shorter = f" (the recipe's: {of_recipe}; compare within this table)"
    of_whole = comparisons[whole.row.name]
    missing = [row for row in suite.rows if row.name not in comparisons]
    unchanged = [row.label for row in missing if not changes(suite, row)]
    absent = [row.label for row in missing if changes(suite, row)]
    parts = [
        f"{suite.plot} on {of_whole.count_questions():,} questions of {of_whole.count_users():,} "
        f"users; epochs: at most {epochs}{'' if counts == [of_recipe] else shorter}.",
        "\n".join(lines),
        f"Not in the recipe here: {'; '.join(unchanged)}." if unchanged else "",
        f"Without a comparable record: {'; '.join(absent)}." if absent else "",
        format_runs(shown),
        fill_in_figures(
            suite.findings,
            suite,
            shown,
            Comparison.read(folder, suite, shown),
            # The runs of the whole recipe that the table compares the row with.
            {name: each for name, each in comparisons.items() if name != whole.row.name},
        ).strip(),
    ]
    return "\n\n".join(part for part in parts if part)


def _render_row(comparison: Comparison, each: MeasuredRow, whole: str) -> str:
    suite, name = comparison.suite, each.row.name
    cells = []
    for ranker in RANKERS:
        cells.append(format_figure(suite, comparison.resample(name, ranker=ranker).mean))
        cells.append(
            ""
            if name == whole
            else format_lead(suite, comparison.compare(name, whole, ranker=ranker))
        )
    seconds = statistics.mean(record.cpu_seconds for record in each.records)
    return format_row([each.row.label, *cells, str(len(each.records)), f"{seconds:.0f}"])
