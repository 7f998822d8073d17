"""The page of results, in Markdown."""

from collections.abc import Sequence

from benchmarks.papers.harness.comparison import Comparison
from benchmarks.papers.harness.measured_rows import (
    MeasuredRow,
)
from benchmarks.papers.harness.measured_suite import MeasuredSuite
from benchmarks.papers.harness.row import Row
from benchmarks.papers.harness.suite import Suite
from benchmarks.papers.pages.attention_plot import find_attention_curves
from benchmarks.papers.pages.curve_plot import collect_learning_curves
from benchmarks.papers.pages.figures import (
    format_row,
    format_spread,
    name_metric,
)
from benchmarks.papers.pages.findings import fill_in_figures
from benchmarks.papers.pages.main_table import MainTable
from benchmarks.papers.pages.repeats_table import render_repeats_table
from benchmarks.papers.pages.run_notes import (
    format_cost,
    format_ends,
    format_missing,
    format_peers,
    format_rising,
    format_runs,
)
from training.evaluation.report import MODEL, WITHHELD

TITLE = "# Recorded results\n"

OPENING = f"""\
{TITLE}
    kairos bench papers --suite retail --rows kairos --quick    # minutes; records nothing
    kairos bench papers --suite retail               # train rows without a record, then render
    kairos bench papers --suite retail --rows kairos,tifu_knn --seeds 0
    kairos bench papers --render                     # all pages and plots, from the records

`--render` writes this page, its plots, docs/results.md and the tables of README.md and
docs/models.md. `--data` names the folder of other data, and `--jobs` how many runs at once, two by
default.

A suite is one TOML file in [suites](suites): a base recipe and rows with changed settings. A row
with a seed is one run, in its own process with one thread by default. Its record,
`results/SUITE/ROW-SEED.json`, holds settings, data digest, machine, command, durations, the
learning curve, the whole report and the rank of every target, so that any two rows can be compared
question by question; the page shows the records whose settings equal the suites'. Only the retail
data ships with Kairos.
[suites/README.md](suites/README.md) has the data, how to run a row again, and how to add a row, a
suite or a peer; peers run in [environments of their own](peers/README.md).

The recommended recipe is what `kairos inspect` recommends for a suite's events; the recipes, with
reasons, are in [recommended](recommended), and `--recommend` rewrites them from the data.
[docs/results.md](../../docs/results.md) sums up what the tables say; the methods and the parts of a
recipe are described in [docs/models.md](../../docs/models.md), with their papers, and terms in the
[glossary](../../docs/glossary.md).
"""

LEGEND = """\
- The name of a row, as `--rows` takes it, follows its label.
- Metrics are averaged over questions. A question has one target, or all items of a basket.
  *hit_rate@10*: whether any target is among the ten best; *recall@10*: the share of the targets
  that are; *ndcg@10*: the sum of 1 / log2(rank + 1) over those, divided by the largest possible;
  *mrr*: one over the rank of the best target; *accuracy*: whether a target is ranked first.
- Mean ± standard deviation over seeds; a trained row without ± has one seed.
- *role*: the default is our recommended recipe; a control is the default without a part, such as
  times or the wide part; a variant is the default with another published way to read time;
  references count; a rival is a published method made for repeats or baskets, in our
  implementation; a method is any other published one, in our implementation; a peer is another
  library's implementation, run by that library.
- In labels: *pointing at repeats*, an encoder that adds scores of the history's own items
  (`repeats`); *targets of the next basket*, a training in which targets of the same basket weigh a
  tenth of others or less (`session_weight`); *five times the time*, a budget of that much more. A
  plain encoder is one of the suite's base recipe, without a wide part and without the calendar,
  periods of a day, a week and a year; where baskets are predicted it points at repeats, and reads
  the items of a basket one after another.
- The reference *counting* chooses its three settings on the validation questions (*frozen* and
  *live* are explained below); *Counting, with constants* has those that our encoder `counting` has
  by default.
- Methods train as the default does: the same tokens per step, learning rates, starting item
  vectors, weights of targets, maximum number of epochs and patience, without a search; SLRC, at
  rates of its own, RMTPP and TimeJoint have the best of three trials. What a row changes is in its
  suite.
- Variants have no periods of the calendar, which neither method has. The one with TO-RoPE, which is
  ours after its abstract and public summaries, as its authors publish no code, has no table of
  positions, since it turns by order, and feed-forward layers of 256, which bring its parameters
  near the default's.
- *reads* is the most that a model reads of time: the order of events (EASE and counts of sets not
  even that), the intervals in the history, or also the query time. What an input is worth shows
  between rows that are equal otherwise.
- The lead of the default over a row is a mean difference in the suite's plotted metric, with its
  95 % interval in brackets: the 2.5 % and 97.5 % quantiles of 2,000 resamples of the users, each
  with all questions, and of the seeds of both rows. It is bold where the interval excludes zero.
  It is an interval of this one test set and split, a little narrow with few seeds, more so with
  one, and not corrected for the number of rows.
- Popularity is frozen at the last training event, and never later than the question, on both sides
  of a lead; only counting, live, and the default's lead over it count up to each question. Where
  each user's last event is the question (MovieLens-100k), or users are split (Stack Overflow),
  models learn from other users' later events, as in papers and as no deployment can.
- Where items of the history are left out (MovieLens, Yelp), *personal frequency* and *repeat the
  last item* have popularity alone, and its figures.
- With the query time withheld a model is queried as of the user's last event. Popularity is that of
  then, too, often weeks older than the frozen one: the difference is not the worth of the query
  time alone.
- Repeats are targets that the user's history holds. Where there are new items, too, a table has the
  recall of both, since a model may find the one and not the other (Li et al. 2023), averaged over
  the questions that have such a target.
- † marks the row that is ahead, by such an interval, of all other rows with a record that read the
  same of time, two at least; the references in the first lines aside. A trained row of one seed has
  none.
- *CPU s / run* is the processor time of a run on one thread, averaged over seeds, with validation,
  refit, test and the ranks of the references. *CPU s of trials* is that of the choice of settings,
  made once for all seeds; a peer's fits with validation are part of it, so that its runs are the
  refit, the test and the references alone. Of rows that only count, the references are most.
- Ties count against the model (`training/evaluation/metrics.py`), which costs references that have
  them; our models break ties by popularity. References that are no row of a suite, and every row
  whose recipe has `refit_before_test`, are fitted on all events before the test, after settings and
  epochs were chosen on the validation part.
- Learning curves are of the first seed. Minutes include fit and validation; peers validate on at
  most 5,000 questions, a sample if there are more. Models with a wide part count popularity up to
  each validation question.
- The plot of attention over time is of the suite's first row of the base recipe (Xu et al. 2019,
  Figure 2): the mean weight of the last event over many histories, by the time since it. *At the
  next event* is at the time of the event that followed, *predicted* at any later time; bands are
  two standard errors. In the plots of metrics references have no colour.
- Peers predict the next item, also where baskets are predicted: items of a basket follow each
  other, so there a peer's figure is of another task than its training. A peer has one to five
  trials; a rival that only counts has up to a hundred, fewer where one takes minutes. Where
  the default gives targets within a session less weight (`session_weight`), so do the peers of
  RecTools; RePlay weighs all targets alike. EASE is fitted by RecTools and scored by us
  ([peers](peers/README.md)).
"""

QUICK_LOOK = (
    "A quick look: a sample of users and few epochs. Not recorded, and not comparable with the "
    "tables of the records."
)


def render_tables(suites: Sequence[MeasuredSuite], *, is_ours: bool = True) -> str:
    """Render the page of all suites that have records.

    Args:
        is_ours: whether it is that of this repository, with links to its other pages.
    """
    sections = [f"{OPENING if is_ours else TITLE}\n{LEGEND}"]
    for each in suites:
        suite, measured = each.suite, each.measured
        if measured:
            picture = f"![{suite.title}](plots/{suite.name}.svg)"
            if collect_learning_curves(suite, measured):
                picture += f"\n\n![Learning curves](plots/{suite.name}-curves.svg)"
            if find_attention_curves(measured):
                picture += f"\n\n![Attention over time](plots/{suite.name}-attention.svg)"
            tables = render_suite(
                suite, measured, each.comparison, of_other_data=each.of_other_data
            )
            sections.append(f"## {suite.title}\n\n{tables}\n\n{picture}\n")
    return "\n".join(sections)


def render_suite(
    suite: Suite,
    measured: list[MeasuredRow],
    comparison: Comparison | None = None,
    *,
    of_other_data: Sequence[Row] = (),
    is_quick: bool = False,
) -> str:
    """Render the tables of one suite.

    Args:
        comparison: of the same rows; without one no leads are shown, and no row is marked.
        of_other_data: rows with records that are left out.
        is_quick: whether the records are of a quick look, which has tables only.
    """
    parts = [
        QUICK_LOOK if is_quick else suite.description.strip(),
        _format_questions(comparison),
        MainTable(suite, measured, comparison).render(),
        _render_query_time_table(suite, measured),
        _render_gap_table(suite, measured),
        render_repeats_table(comparison),
        format_runs(measured),
    ]
    if not is_quick:
        parts += [
            format_cost(measured),
            format_peers(suite, measured, comparison),
            format_rising(measured),
            format_ends(suite, measured, comparison),
            format_missing(suite, measured, comparison, of_other_data),
            fill_in_figures(suite.findings.strip(), suite, measured, comparison),
        ]
    return "\n\n".join(part for part in parts if part)


def _format_questions(comparison: Comparison | None) -> str:
    """Format how many questions, users and cold targets there are."""
    if comparison is None:
        return ""
    questions, targets = comparison.count_questions(), comparison.count_targets()
    users = comparison.count_users()
    later = comparison.count_questions("after_a_gap")
    gap = (
        "all of them later than the last event of their history"
        if later == questions
        else f"{later:,} of them later than the last event of their history (after a gap)"
    )
    cold = comparison.questions.cold_targets
    return (
        f"{questions:,} question{'s' * (questions > 1)} of {users:,} user{'s' * (users > 1)}, "
        f"{gap}; {targets:,} target{'s' * (targets > 1)}, of "
        f"which {cold:,} are cold items, which are not in the catalog (every row misses them)."
    )


def _render_query_time_table(suite: Suite, measured: list[MeasuredRow]) -> str:
    """Render the metric of models that read the query time, with and without it."""
    rows = [each for each in measured if each.reads_query_time]
    if not rows:
        return ""
    head = ["query time", f"{name_metric(suite, suite.plot)}, given", "withheld"]
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
        f"{name_metric(suite, suite.plot)}, given",
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
        spreads = (format_spread(suite, values) for values in columns)
        table.append(format_row([each.row.label, *spreads]))
    return "\n".join(table)
