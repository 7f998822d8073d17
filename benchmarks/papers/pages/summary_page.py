"""The page that sums up all suites: the default against everything else, by role."""

import statistics
from collections.abc import Sequence

from benchmarks.papers.harness.measured_suite import MeasuredSuite
from benchmarks.papers.harness.suite import Suite
from benchmarks.papers.harness.suite_result import Opponent, SuiteResult
from benchmarks.papers.pages.figures import (
    format_figure,
    format_lead,
    format_row,
    name_headline,
    name_metric,
    replace_between,
)
from benchmarks.papers.pages.findings import fill_in_figures
from benchmarks.papers.pages.run_notes import list_incomparable

ROLES = ("reference", "rival", "peer", "method", "variant", "control")
"""Roles of opponents, in the order of the page."""

README_ROLES = ("reference", "rival", "peer", "method", "variant")
"""The roles of the README's table."""

CONTROL_OF_TIMES = "kairos_positional"
"""The row of the default whose encoder has positions in place of times."""

POPULARITIES = frozenset({"popular_all_time", "popular_last_week"})
"""The references that know no user."""

README_OPENING, README_CLOSING = "<!-- results -->", "<!-- rendered from the records -->"
"""The markers around the table in the README."""

OPENING = """\
# Is it good?

This page is rendered from the [records](../benchmarks/papers/README.md) by `kairos bench papers
--render`; every figure of its tables and leads is computed from them. The default is the recipe
that `kairos inspect` recommends for the events before the test, without a search on the data set.
The rules that it follows were developed on these data sets, in part by looking at these tests
(decisions [25](decisions/0025-wide-part.md), [28](decisions/0028-recommended-recipe.md),
[29](decisions/0029-weak-time-features.md), [45](decisions/0045-training-near-the-arithmetic.md),
[72](decisions/0072-recipes-of-sessions.md), [73](decisions/0073-phase-where-it-predicts.md),
[74](decisions/0074-sessions-and-returns.md)), so that no test here is independent of them.

It is compared with *references*, which count; *rivals*, published methods made for repeats or
baskets, in our implementation; *peers*, models of other libraries, run by those libraries; other
published *methods*, in our implementation; *variants*, the default with another published way to
read time; and *controls*, the default without a part. [docs/models.md](models.md) describes them,
with their papers; terms are in the [glossary](glossary.md). Settings of rivals and peers were
chosen on the validation questions, in a few trials; methods train as the default does, without a
search. So no row is the best that its method can reach. A trial of a peer ends after some
evaluations without a better one, or with the epoch in which its fit, without validation, has taken
BUDGETS times the processor time of a whole run of the default. Runs of one suite are of several
machines, and these ratios differ with their speeds; the notes below the
[tables](../benchmarks/papers/README.md) say by how much.

*After a gap* are the questions later than the last event of their history: nearly half of
MovieLens-100k's questions have the timestamp of that event, so nobody could have asked them, and
most of its others are within an hour of it.

A lead is the mean difference of one metric on the same test questions, with its 95 % interval:
users are resampled with all their questions, and so are the seeds of both sides. It is an interval
of one test set and split, a little narrow with few seeds, and not corrected for the number of
comparisons; over a trained row *of one seed* it is of the users and the default's seeds alone, so
narrower. *Ahead* and *behind* are said only where it excludes zero. The best of a role is the one
with the best test figure.
"""


def render_summary(results: Sequence[SuiteResult], suites: Sequence[MeasuredSuite]) -> str:
    """Render the page: first where the default is not ahead, then the picture and the table.

    Args:
        suites: all, to name what is not among the results.
    """
    shown = {result.suite.name for result in results}
    missing = [
        each.suite.title
        for each in suites
        if each.suite.name not in shown
        and any(row.recipe == "recommended" for row in each.suite.rows)
    ]
    parts = [
        OPENING.replace("BUDGETS", _format_budgets(results)),
        "## Where Kairos is not ahead\n",
        _sum_up(results),
        _sum_up_times(results),
        _introduce_counts(results),
        _render_counts(results),
        "",
        *(_render_limits(result) for result in results),
        *[f"Without comparable records of the default: {'; '.join(missing)}.\n"] * bool(missing),
        "## In one picture\n",
        "![Leads of the default on every data set](../benchmarks/papers/plots/leads.svg)\n",
        "The default's lead in percent of the other's own figure: over the best reference and the\n"
        "best method, and over every rival, peer, variant and control. Right of the line the\n"
        "default is ahead. Each panel has its own axis: linear to 20 %, logarithmic beyond.\n",
        "## In figures\n",
        _render_table(results),
        "",
        "Figures are of frozen popularity and with the query time given, as in deployment between\n"
        "two trainings; what changes with live popularity or without the query time is in the\n"
        "[tables](../benchmarks/papers/README.md), with learning curves and costs. Where each\n"
        "user's last event is the question (MovieLens-100k), or users are split (Stack Overflow),\n"
        "models learn from other users' later events, as is usual in papers and impossible in\n"
        "deployment.\n",
    ]
    return "\n".join(parts)


def update_readme(page: str, results: Sequence[SuiteResult]) -> str:
    """Replace the table of results in the README, and what times add to the encoder.

    Raises:
        TrainingError: if one of its markers is missing.
    """
    text = "\n\n".join((_render_table(results, README_ROLES), _sum_up_times(results))).strip()
    return replace_between(page, README_OPENING, README_CLOSING, text)


def _format_budgets(results: Sequence[SuiteResult]) -> str:
    """Format the range of what peers are given, in runs of the default of their suite."""
    usual: list[float] = []
    own: list[float] = []
    for result in results:
        cost = statistics.mean(record.cpu_seconds for record in result.default.records)
        for row in (row for row in result.suite.rows if row.role == "peer"):
            budgets = usual if row.budget_seconds is None else own
            budgets.append(result.suite.get_budget(row) / cost)
    if not usual:
        return "some"
    text = f"{min(usual):.2f} to {max(usual):.2f}"
    if own:
        text += f" times, in rows with a budget of their own {min(own):.2f} to {max(own):.2f}"
    return text


def _sum_up(results: Sequence[SuiteResult]) -> str:
    """Name the data sets where the default is not ahead of all others, then those where it is."""
    not_ahead: list[str] = []
    ahead_of_all: list[str] = []
    ahead_so_far: list[str] = []
    for result in results:
        leads = [each.lead for each in result.opponents if each.role != "control"]
        runs = [result.count_runs(role) for role in ("rival", "peer", "variant")]
        run, of = (sum(counts) for counts in zip(*runs, strict=True))
        title = result.suite.data_title
        if run < of:
            title += f" ({run} of {of} rivals, peers and variants run)"
        if all(lead.low > 0 for lead in leads):
            (ahead_of_all if run == of else ahead_so_far).append(title)
        else:
            not_ahead.append(title)
    everything = (
        "every reference, rival, peer, method and variant that was run, in the table's metric"
    )
    is_never_ahead = len(not_ahead) == len(results) > 1
    lists = (
        (
            f"On none of the {len(results)} data sets is the default ahead of {everything}"
            if is_never_ahead
            else f"Data sets where the default is not ahead of {everything}",
            not_ahead,
        ),
        ("Data sets where it is ahead of them all", ahead_of_all),
        ("Data sets where it is ahead of those that were run", ahead_so_far),
    )
    return "".join(f"{text}: {'; '.join(titles)}.\n" for text, titles in lists if titles)


def _sum_up_times(results: Sequence[SuiteResult]) -> str:
    """Name the data sets where the default is ahead of the control with positions, and the others.

    Empty if no suite has a record of that control.
    """
    shown: list[str] = []
    below: list[str] = []
    level: list[str] = []
    for result in results:
        control = next((each for each in result.opponents if each.name == CONTROL_OF_TIMES), None)
        if control is not None:
            title = result.suite.data_title
            named = f"{title} ({format_lead(result.suite, control.lead)})"
            if control.lead.low > 0:
                shown.append(named)
                below += [title] * _is_below_popularity(result, control)
            else:
                level.append(name_headline(result.suite, named))
    if not shown and not level:
        return ""
    sentences = ["Times in place of positions in its encoder are shown to help on no data set."]
    if shown:
        sentences = [
            f"Times in place of positions in its encoder are shown to help on {'; '.join(shown)}."
        ]
    sentences += [f"That they help is not shown on {'; '.join(level)}."] * bool(level)
    sentences += ["The control with positions keeps the wide part, which reads times itself."]
    sentences += [
        f"On {'; '.join(below)} it is below popularity, so that lead is not the worth of times "
        "alone."
    ] * bool(below)
    return " ".join(sentences) + "\n"


def _is_below_popularity(result: SuiteResult, control: Opponent) -> bool:
    """Return whether a control has a smaller figure than popularity, of all time or recent."""
    popularities = [each.mean for each in result.opponents if each.name in POPULARITIES]
    return control.mean < max(popularities, default=0.0)


def _introduce_counts(results: Sequence[SuiteResult]) -> str:
    """Say what the counts below are of."""
    text = (
        "In figures, how many it is ahead of, of those that were run; rows of one method with "
        "other settings count apart."
    )
    titles = [result.suite.data_title for result in results if result.suite.excludes_seen]
    text += (
        f" Rivals made for repeats have none to count where items of the history are left out: "
        f"{'; '.join(titles)}."
    ) * bool(titles)
    return text + "\n"


def _render_counts(results: Sequence[SuiteResult]) -> str:
    """Render how many opponents of each role the default is ahead of, for every data set."""
    lines = [
        format_row(["data set", *(f"{role}s" for role in ROLES)]),
        format_row(["---", *["---:"] * len(ROLES)]),
    ]
    for result in results:
        title = result.suite.data_title
        lines.append(format_row([title, *(_format_count(result, role) for role in ROLES)]))
    return "\n".join(lines)


def _format_count(result: SuiteResult, role: str) -> str:
    """Format how many of the opponents of a role that were run the default is ahead of."""
    passed = sum(each.lead.low > 0 for each in result.opponents if each.role == role)
    run, of = result.count_runs(role)
    if not run:
        return "not run" * bool(of)
    is_partial = role != "reference" and run < of
    return f"{passed} of {run}" + f" ({of - run} not run)" * is_partial


def _render_limits(result: SuiteResult) -> str:
    suite, opponents = result.suite, result.opponents
    passed = [each for each in opponents if each.lead.low > 0]
    behind = [each for each in opponents if each.lead.high < 0]
    level = [each for each in opponents if each not in passed and each not in behind]
    first = f"Ahead of {len(passed)} of the {len(opponents)} others that were run."
    if len(passed) == len(opponents):
        first = f"Ahead of all {len(passed)} others that were run."
    sentences = [f"Behind {_list_leads(suite, behind)}."] * bool(behind)
    sentences += [f"Not shown to be ahead of {_list_leads(suite, level)}."] * bool(level)
    sentences += _name_others_not_passed(result)
    sentences += _name_missing(result)
    measured = result.measured_suite.measured
    why = fill_in_figures(suite.limits.strip(), suite, measured, result.comparison)
    task = f", {suite.task}" * bool(suite.task)
    lines = [f"- **{suite.data_title}**{task}. {' '.join([first, why]).strip()}"]
    return "\n".join([*lines, *(f"  - {sentence}" for sentence in sentences)]) + "\n"


def _name_others_not_passed(result: SuiteResult) -> list[str]:
    """Name what the default is ahead of by the headline, but not on all questions or in others.

    Those are the other metrics of the suite that are computed from ranks.
    """
    suite, sentences = result.suite, []
    passed = {each.name for each in result.opponents if each.lead.low > 0}
    if suite.headline == "after_a_gap":
        others = [each for each in result.of_all_questions().opponents if each.name in passed]
        level = [each for each in others if not each.lead.low > 0]
        sentences += [
            f"Ahead after a gap, but not over all questions: {_list_leads(suite, level)}."
        ] * bool(level)
    for metric in suite.metrics:
        if metric == suite.plot or metric.endswith("_sampled100"):
            continue
        leads = {
            each.label: result.comparison.compare(
                result.default.row.name, each.name, suite.headline, metric=metric
            )
            for each in result.opponents
            if each.name in passed
        }
        labels = [label for label, lead in leads.items() if not lead.low > 0]
        sentences += [f"Ahead in {suite.plot}, but not in {metric}: {'; '.join(labels)}."] * bool(
            labels
        )
    return sentences


def _name_missing(result: SuiteResult) -> list[str]:
    """Name the rows without a record, of the methods only how many, and those not compared."""
    measured, of_other_data = result.measured_suite.measured, result.measured_suite.of_other_data
    recorded = {each.row.name for each in measured} | {row.name for row in of_other_data}
    missing = [row for row in result.suite.rows if row.name not in recorded]
    names = [row.label for row in missing if row.role != "method"]
    methods = len(missing) - len(names)
    names += [f"{methods} method{'s' * (methods > 1)}"] * bool(methods)
    sentences = [f"Without a record: {'; '.join(names)}."] * bool(names)
    return sentences + list_incomparable(measured, result.comparison, of_other_data)


def _list_leads(suite: Suite, opponents: list[Opponent]) -> str:
    return "; ".join(f"{each.label}, {format_lead(suite, each.lead)}" for each in opponents)


def _render_table(results: Sequence[SuiteResult], roles: Sequence[str] = ROLES) -> str:
    head = ["data set", "metric", "default", *(f"best {role}" for role in roles)]
    lines = [format_row(head), format_row(["---", "---", "---:", *["---"] * len(roles)])]
    for result in results:
        suite = result.suite
        is_gap = suite.headline == "after_a_gap"
        metric = name_metric(suite, suite.plot)
        lines.append(_format_result(result, roles, name_headline(suite, metric)))
        if is_gap:
            lines.append(
                _format_result(result.of_all_questions(), roles, f"{metric}, all questions")
            )
    return "\n".join(lines)


def _format_result(result: SuiteResult, roles: Sequence[str], metric: str) -> str:
    suite = result.suite
    own = result.comparison.resample(result.default.row.name, suite.headline).mean
    cells = [suite.title, metric, format_figure(suite, own)]
    for role in roles:
        best = result.find_best(role)
        run, of = result.count_runs(role)
        if best is None:
            cells.append("not run" if of else "")
            continue
        is_partial = role != "reference" and run < of
        cells.append(_format_opponent(suite, best) + f" ({run} of {of} run)" * is_partial)
    return format_row(cells)


def _format_opponent(suite: Suite, opponent: Opponent) -> str:
    lead = format_lead(suite, opponent.lead)
    return f"{opponent.label} {format_figure(suite, opponent.mean)}; lead {lead}"
