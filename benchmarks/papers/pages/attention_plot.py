"""A plot of the attention on the last event over time, after Figure 2 of Xu et al. 2019."""

import math
from typing import NamedTuple

from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.papers.harness.measured_rows import MeasuredRow
from benchmarks.papers.harness.record import ProfilePoint
from benchmarks.papers.pages.plot import STYLE, digest_drawn, format_svg

LEAST = 20
"""The least number of histories of a point."""

MOST_CURVES = 6


class Panel(NamedTuple):
    """One of the three panels."""

    title: str
    view: str
    by: str


PANELS = (
    Panel("after each action, at the next event", "observed", "action"),
    Panel("by category, at the next event", "observed", "category"),
    Panel("after each action, predicted", "predicted", "action"),
)


def find_attention_curves(measured: list[MeasuredRow]) -> list[ProfilePoint]:
    """Find the attention profile of the first record that has one; empty if none has.

    That of the recommended recipe is left out: its wide part does some of the attention's work.
    """
    profiles = (
        record.attention_profile
        for each in measured
        if each.row.recipe == "base"
        for record in each.records
    )
    return next((profile for profile in profiles if profile), [])


def digest_curves(title: str, curves: list[ProfilePoint]) -> str:
    """Compute a digest of the figures and labels of a plot."""
    return digest_drawn([title, [point.model_dump() for point in curves]])


def draw_attention(title: str, curves: list[ProfilePoint]) -> str:
    """Draw three panels: observed by action, observed by category, and predicted by action.

    Bands are two standard errors of the mean to either side.
    """
    with style.context(STYLE):
        figure = Figure(figsize=(11.4, 3.4), layout="constrained")
        for panel, axis in zip(PANELS, figure.subplots(1, len(PANELS), sharey=True), strict=True):
            _draw_panel(axis, panel, curves)
        figure.suptitle(f"{title}: average attention on the last event", fontsize=10)
        return format_svg(figure, digest_curves(title, curves))


def _draw_panel(axis: Axes, panel: Panel, curves: list[ProfilePoint]) -> None:
    points = [
        point
        for point in curves
        if (point.view, point.by) == (panel.view, panel.by) and point.count >= LEAST
    ]
    counts: dict[str, int] = {}
    for point in points:
        counts[point.name] = counts.get(point.name, 0) + point.count
    for name in sorted(counts, key=lambda name: (-counts[name], name))[:MOST_CURVES]:
        own = [point for point in points if point.name == name]
        days = [point.interval_days for point in own]
        means = [point.mean for point in own]
        errors = [2 * point.sd / math.sqrt(point.count) for point in own]
        (line,) = axis.plot(days, means, "o-", ms=3, lw=1.2, label=name)
        axis.fill_between(
            days,
            [mean - error for mean, error in zip(means, errors, strict=True)],
            [mean + error for mean, error in zip(means, errors, strict=True)],
            color=line.get_color(),
            alpha=0.15,
            linewidth=0,
        )
    axis.set_xscale("log")
    axis.set_xticks(
        [1 / 1440, 1 / 24, 1, 7, 30, 365, 3650],
        ["minute", "hour", "day", "week", "month", "year", "10 y"],
        rotation=45,
        fontsize=8,
    )
    axis.minorticks_off()
    axis.set_title(panel.title, fontsize=9)
    axis.set_xlabel("time since the last event")
    if panel is PANELS[0]:
        axis.set_ylabel("weight, mean over heads")
    if counts:
        axis.legend(fontsize=8)
