"""The picture of all leads: one panel per suite, one dot per opponent of the default."""

from collections.abc import Sequence

from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from benchmarks.papers.harness.suite_result import Opponent, SuiteResult
from benchmarks.papers.pages.figures import name_headline
from benchmarks.papers.pages.plot import STYLE, digest_drawn, format_svg
from training.evaluation.metrics import Lead

COLOURS = {
    "reference": "#6b7280",
    "rival": "#b45309",
    "peer": "#1d4ed8",
    "method": "#7c3aed",
    "variant": "#be185d",
    "control": "#0f766e",
}
"""The roles of opponents that are drawn."""

ONLY_BEST = ("reference", "method")
"""Roles of which only the best is drawn."""

COLUMNS = 2

LINEAR_TO = 20
"""Percent up to which the axis is linear; beyond, it is logarithmic."""


Drawn = list[tuple[Opponent, Lead]]


def collect_drawn(results: Sequence[SuiteResult]) -> list[tuple[str, Drawn]]:
    """Collect the title of every panel, its opponents and the relative leads over them."""
    panels = []
    for result in results:
        opponents = [
            (each, each.relative)
            for role in COLOURS
            for each in result.opponents
            # A figure of zero has no relative lead over it.
            if each.role == role and each.relative is not None
            if role not in ONLY_BEST or each is result.find_best(role)
        ]
        metric = name_headline(result.suite, result.suite.plot)
        below = f"{result.suite.task}, {metric}" if result.suite.task else metric
        panels.append((f"{result.suite.data_title}\n{below}", opponents))
    return panels


def digest_leads(results: Sequence[SuiteResult]) -> str:
    """Compute a digest of the figures and labels of the picture."""
    drawn = [
        [title, [[each.label, each.role, *(round(one, 4) for one in lead)] for each, lead in on]]
        for title, on in collect_drawn(results)
    ]
    return digest_drawn(drawn)


def draw_leads(results: Sequence[SuiteResult]) -> str:
    """Draw the relative leads of the default with their intervals."""
    panels = collect_drawn(results)
    rows = -(-len(panels) // COLUMNS)
    most = max(len(opponents) for _, opponents in panels)
    with style.context(STYLE):
        figure = Figure(figsize=(11.4, rows * (0.9 + 0.19 * most)), layout="constrained")
        axes = figure.subplots(rows, COLUMNS, squeeze=False).ravel()
        for axis, (title, opponents) in zip(axes, panels, strict=False):
            _draw_panel(axis, title, opponents)
        for axis in axes[len(panels) :]:
            axis.set_axis_off()
        drawn = {each.role for _, opponents in panels for each, _ in opponents}
        handles = [
            axes[0].plot([], [], "o", color=colour, label=role)[0]
            for role, colour in COLOURS.items()
            if role in drawn
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), fontsize=8)
        figure.suptitle("Lead of Kairos's default, % of the other's figure", fontsize=10)
        return format_svg(figure, digest_leads(results))


def _draw_panel(axis: Axes, title: str, opponents: Drawn) -> None:
    for position, (each, lead) in enumerate(opponents):
        mean, low, high = (100 * value for value in lead)
        axis.errorbar(
            mean,
            position,
            xerr=[[mean - low], [high - mean]],
            fmt="o",
            ms=4,
            capsize=2,
            color=COLOURS[each.role],
        )
    axis.axvline(0, color="black", lw=0.8)
    axis.set_xscale("symlog", linthresh=LINEAR_TO)
    if max(map(abs, axis.get_xlim())) <= LINEAR_TO:
        # The locator of such a scale has ticks at the limits only, if all is linear.
        axis.xaxis.set_major_locator(MaxNLocator(5))
    axis.xaxis.set_major_formatter("{x:g}")
    axis.set_yticks(range(len(opponents)), [each.label for each, _ in opponents], fontsize=7)
    axis.invert_yaxis()
    axis.set_title(title, fontsize=9, pad=14)
    sides = "behind \N{LEFTWARDS ARROW}   \N{RIGHTWARDS ARROW} ahead"
    at_line = axis.get_xaxis_transform()
    axis.text(0, 1.01, sides, fontsize=7, ha="center", va="bottom", transform=at_line)
