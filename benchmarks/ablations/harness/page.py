"""The page of the ablations, in Markdown."""

import statistics
from pathlib import Path

from benchmarks.ablations.harness.ablations import (
    Ablations,
    changes,
    get_epochs,
    read_ablation,
)
from benchmarks.ablations.harness.effects import (
    Pair,
    average_metric,
    measure_effect,
    pair_records,
)
from benchmarks.papers.harness.comparison import Lead
from benchmarks.papers.harness.figures import format_figure, format_lead, format_row
from benchmarks.papers.harness.measured_rows import MeasuredRow
from benchmarks.papers.harness.suite import Suite
from benchmarks.papers.harness.tables_page import (
    OLDER_RECORDS,
    format_runs,
)
from training.evaluation.report import LIVE, MODEL, WITHHELD

RANKERS = {LIVE: "live", MODEL: "frozen", WITHHELD: "withheld"}

OPENING = f"""\
# What each part of the recommended recipe is worth

    kairos bench ablations                           # train rows without a record, then render
    kairos bench ablations --suite retail --rows full,no_drift --seeds 0,1,2
    kairos bench ablations --epochs 3                # shorter runs, compared with each other only
    kairos bench ablations --render                  # this page, from the records

Each row changes one part of the recommended recipe ([ablations.toml](ablations.toml)); the suites
and their recipes are those of [the papers' tables](../papers/README.md). A row that changes nothing
for a data set, since its recipe does not have that part, is not run.

- Live counts popularity up to each query, frozen up to the last training event; withheld is frozen
  without the query time.
- Differences are to the whole recipe with the same seeds and epochs, on the same questions; in
  brackets the 95 % interval by paired bootstrap over the questions, in bold where it leaves out
  zero. The interval does not contain the spread between seeds.
{OLDER_RECORDS}"""


def render_ablations(folder: Path, papers: Path) -> str:
    """Render the page of all suites that have records.

    Args:
        folder: of ablations.toml and results/.
        papers: of suites/ and recommended/.
    """
    ablations = Ablations.read(folder)
    sections = [OPENING]
    if ablations.findings:
        sections.append(f"{ablations.findings.strip()}\n")
    for name in ablations.suites:
        suite = ablations.read_suite(name, papers)
        if measured := read_ablation(folder, suite):
            sections.append(f"## {suite.title}\n\n{render_ablation(suite, measured)}\n")
    return "\n".join(sections)


def render_ablation(suite: Suite, measured: list[MeasuredRow]) -> str:
    """Render the table of one suite, and name the rows that it does not show."""
    first = measured[0]
    if first.row != suite.rows[0]:
        return f"Without a record of {suite.rows[0].label}, nothing can be compared."
    pairs = {each.row.name: pair_records(each, first) for each in measured}
    shown = [each.row for each in measured if pairs[each.row.name]]
    head = ["", *(text for it in RANKERS.values() for text in (it, "difference")), "CPU s / run"]
    lines = [format_row(head), format_row(["---", *["---:"] * (len(head) - 1)])]
    lines += [_render_row(suite, row.label, pairs[row.name], row == first.row) for row in shown]
    runs = [record for name in pairs for record, _ in pairs[name]]
    questions = runs[0].report.rows[MODEL]["questions"]
    counts = sorted({get_epochs(run) for run in runs})
    epochs = " or ".join(map(str, counts))
    whole = suite.build_config(suite.rows[0], 0).fit.epochs
    of_recipe = "" if counts == [whole] else f" (the recipe's: {whole}; compare within this table)"
    missing = [row for row in suite.rows if row not in shown]
    unchanged = [row.label for row in missing if not changes(suite, row)]
    absent = [row.label for row in missing if changes(suite, row)]
    parts = [
        f"{suite.plot} on {questions:,.0f} questions; epochs: at most {epochs}{of_recipe}.",
        "\n".join(lines),
        f"Not in the recipe here: {'; '.join(unchanged)}." if unchanged else "",
        f"Without a comparable record: {'; '.join(absent)}." if absent else "",
        format_runs(measured),
    ]
    return "\n\n".join(part for part in parts if part)


def _render_row(suite: Suite, label: str, pairs: list[Pair], is_full: bool) -> str:
    records = [record for record, _ in pairs]
    cells = []
    for ranker in RANKERS:
        cells.append(format_figure(suite, average_metric(records, ranker, suite.plot)))
        cells.append("" if is_full else format_lead(suite, Lead(*measure_effect(pairs, ranker))))
    seconds = statistics.mean(record.cpu_seconds for record in records)
    return format_row([label, *cells, f"{seconds:.0f}"])
