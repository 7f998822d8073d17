"""The page of results, in Markdown."""

import statistics
from pathlib import Path

from benchmarks.papers.harness.results import (
    MeasuredRow,
    collect_references,
    find_attention_curves,
    find_best,
    read_measured,
    standard_deviation,
)
from benchmarks.papers.harness.suite import Row, Suite
from training.evaluation.counting import COUNTING_LIVE
from training.evaluation.report import MODEL, WITHHELD

REFERENCES = {
    "popular_all_time": "popularity, all time",
    "popular_last_week": "popularity, last 7 days",
    "last_item_markov": "last-item Markov",
    "personal_frequency": "personal frequency",
    "repeat_last": "repeat the last item",
    "counting": "counting, frozen",
    "counting_live": "counting, live",
}

OLDER_RECORDS = """\
- Tables recorded before 2026-11-24 are from before events of one instant were sorted, and equal
  ones counted once ([decision 39](../../docs/decisions/0039-events-of-one-instant-are-a-set.md)):
  the questions of later tables differ, and so do the figures of their references.
- Tables of the demo's data recorded before 2026-11-27 are of 809,560 events, with postage, charges
  and adjustments among the articles; the [shipped data](../../demo/README.md) no longer has these
  15 items and their 3,750 events.
"""
"""Stands on every page of results."""

OPENING = f"""\
# Recorded results

    kairos bench papers --suite stackoverflow        # train rows without a record, then render
    kairos bench papers --suite retail --rows demo --seeds 0,1,2
    kairos bench papers --suite stackoverflow --quick    # a minute's look; records nothing
    kairos bench papers --render                     # this page and its plots, from the records

A suite is one TOML file in [suites](suites): a base recipe and rows with changed settings. A row
with a seed is one run, in its own process with one thread by default. Its record in `results/`
holds settings, data digest, machine, command, durations and the whole report; the page shows the
records whose settings equal the suites'. Only the retail data ships with Kairos.

The recommended recipe is what `kairos inspect` recommends for a suite's events; the recipes, with
reasons, are in [recommended](recommended), and `--recommend` rewrites them from the data.

- Mean ± standard deviation over seeds; the best row of a class in bold.
- The class is what a model reads of time: the order of events only, the intervals in the history,
  or also the query time. Compare rows within a class; a difference between classes shows the value
  of the additional input.
- Seconds are of the whole run, evaluation included. Runs shared the machine, so CPU seconds are
  more reliable.
- Ties count against the model (`training/evaluation/metrics.py`). References are fitted on all
  events before the test, as is the recommended recipe; other models on the training part only.
{OLDER_RECORDS}\
- The other rows of a suite share one budget and one set of settings, except for a row's own.
"""


def render_page(folder: Path) -> str:
    """Render the page of all suites that have records.

    Args:
        folder: of suites/ and results/.
    """
    sections = [OPENING]
    for file in sorted((folder / "suites").glob("*.toml")):
        suite = Suite.read(file)
        if measured := read_measured(folder, suite):
            picture = f"![{suite.title}](plots/{suite.name}.svg)"
            if find_attention_curves(measured):
                picture += f"\n\n![Attention over time](plots/{suite.name}-attention.svg)"
            sections.append(f"## {suite.title}\n\n{render_suite(suite, measured)}\n\n{picture}\n")
    return "\n".join(sections)


def render_suite(suite: Suite, measured: list[MeasuredRow]) -> str:
    """Render the tables of one suite."""
    parts = [
        suite.description.strip(),
        _render_table(suite, measured),
        _render_query_time_table(suite, measured),
        _render_gap_table(suite, measured),
        _format_lead(suite, measured),
        format_runs(measured),
        _format_missing(suite, measured),
        suite.findings.strip(),
    ]
    return "\n\n".join(part for part in parts if part)


def _render_table(suite: Suite, measured: list[MeasuredRow]) -> str:
    published = any(each.row.published for each in measured)
    head = ["model", "class", *suite.metrics, "seeds", "parameters", "s / run", "CPU s / run"]
    lines = [format_row([*head, "published"] if published else head)]
    right = "---:"
    lines.append(format_row(["---", "---", *[right] * (len(head) - 2), *["---"] * published]))
    for name, figures in collect_references(measured).items():
        cells = [format_figure(suite, figures.get(metric)) for metric in suite.metrics]
        empty = [""] * (4 + published)
        lines.append(format_row([REFERENCES.get(name, name), "reference", *cells, *empty]))
    rivals = {
        each.row.time_class: [
            rival for rival in measured if rival.row.time_class == each.row.time_class
        ]
        for each in measured
    }
    for each in measured:
        cells = [
            _format_spread(
                suite,
                each.list_given(metric),
                bold=find_best(rivals[each.row.time_class], metric) is each,
            )
            for metric in suite.metrics
        ]
        cost = [
            str(len(each.records)),
            f"{each.records[0].parameters:,}",
            f"{statistics.mean(record.seconds for record in each.records):.0f}",
            f"{statistics.mean(record.cpu_seconds for record in each.records):.0f}",
        ]
        source = [_format_published(suite, each.row)] if published else []
        lines.append(format_row([each.row.label, each.row.time_class, *cells, *cost, *source]))
    return "\n".join(lines)


def _render_query_time_table(suite: Suite, measured: list[MeasuredRow]) -> str:
    """Render the metric of models that read the query time, with and without it."""
    rows = [each for each in measured if each.reads_query_time]
    if not rows:
        return ""
    head = ["query time", f"{suite.plot}, given", "withheld"]
    has_live = any(each.list_live(suite.plot) for each in rows)
    head += ["given, live popularity"] * has_live
    lines = []
    for each in rows:
        columns = [each.list_given(suite.plot), each.list_withheld(suite.plot)]
        lines.append((each, columns + [each.list_live(suite.plot)] * has_live))
    return _render_spreads(suite, head, lines)


def _render_gap_table(suite: Suite, measured: list[MeasuredRow]) -> str:
    """Render the metric on questions after a gap, with the rows that read the order only.

    Where a question has the instant of the event before, knowing that alone helps; what else the
    query time is worth shows here.
    """
    report = measured[0].records[0].report
    questions = report.rows[MODEL]["questions"]
    later = report.after_a_gap.get(MODEL, {}).get("questions", questions)
    if later == questions:
        return ""
    head = [
        f"after a gap ({later:.0f} of {questions:.0f} questions)",
        f"{suite.plot}, given",
        "withheld",
    ]
    lines = []
    for each in measured:
        if given := each.list_after_gap(MODEL, suite.plot):
            withheld = each.list_after_gap(WITHHELD, suite.plot)
            lines.append((each, [given, withheld if each.reads_query_time else []]))
    return _render_spreads(suite, head, lines)


def _render_spreads(
    suite: Suite, head: list[str], lines: list[tuple[MeasuredRow, list[list[float]]]]
) -> str:
    """Render a table of spreads over seeds, from the values of every seed per row and column."""
    table = [format_row(head), format_row(["---", *["---:"] * (len(head) - 1)])]
    for each, columns in lines:
        spreads = (_format_spread(suite, values) for values in columns)
        table.append(format_row([each.row.label, *spreads]))
    return "\n".join(table)


def _format_lead(suite: Suite, measured: list[MeasuredRow]) -> str:
    first = find_best(measured, suite.plot)
    # The metric is that of frozen popularity; live popularity is another input.
    rivals = {
        name: row for name, row in collect_references(measured).items() if name != COUNTING_LIVE
    }
    if first is None or not rivals:
        return ""
    rival = max(rivals, key=lambda name: rivals[name]["ndcg@10"])
    leads = [
        f"{lead.mean:+.4f} ({lead.low:+.4f} to {lead.high:+.4f}) with seed {record.seed}"
        for record in first.records
        if (lead := record.report.ahead.get(rival)) is not None
    ]
    if not leads:
        return ""
    return (
        f"Against {REFERENCES.get(rival, rival)}, the best reference by ndcg@10: "
        f"{first.row.label}, {', '.join(leads)} (95 %, by paired bootstrap over the questions)."
    )


def format_runs(measured: list[MeasuredRow]) -> str:
    """Format the machines and the days of the records."""
    records = [record for each in measured for record in each.records]
    machines = {
        f"{record.processor}, {record.threads} {'thread' if record.threads == 1 else 'threads'}, "
        f"torch {record.torch}" + ("" if record.device == "cpu" else f", on {record.device}")
        for record in records
    }
    days = sorted({record.started_at[:10] for record in records})
    span = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    return f"Machine: {'; '.join(sorted(machines))}. Recorded {span}."


def _format_missing(suite: Suite, measured: list[MeasuredRow]) -> str:
    recorded = {each.row.name for each in measured}
    missing = [row.label for row in suite.rows if row.name not in recorded]
    return f"Without a record: {'; '.join(missing)}." if missing else ""


def _format_published(suite: Suite, row: Row) -> str:
    if row.published is None:
        return ""
    several = len(row.published.figures) > 1
    figures = ", ".join(
        format_figure(suite, value) + (f" {metric}" if several else "")
        for metric, value in row.published.figures.items()
    )
    return f"{figures} ({row.published.source})"


def _format_spread(suite: Suite, values: list[float], *, bold: bool = False) -> str:
    if not values:
        return ""
    mean = format_figure(suite, statistics.mean(values))
    mean = f"**{mean}**" if bold else mean
    return (
        f"{mean} ± {format_figure(suite, standard_deviation(values))}" if len(values) > 1 else mean
    )


def format_figure(suite: Suite, value: float | None) -> str:
    """Format a figure as the suite does; empty for None."""
    if value is None:
        return ""
    return f"{100 * value:.2f}" if suite.figures == "percent" else f"{value:.4f}"


def format_row(cells: list[str]) -> str:
    """Format a row of a table."""
    return f"| {' | '.join(cells)} |"
