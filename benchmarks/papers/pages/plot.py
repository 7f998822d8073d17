"""The plots of a suite, as small SVG files; equal figures give equal files."""

import hashlib
import io
import json
import statistics
from typing import Any, NamedTuple

from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.papers.harness.measured_rows import (
    MeasuredRow,
    collect_references,
    standard_deviation,
)
from benchmarks.papers.harness.references import REFERENCES
from benchmarks.papers.harness.row import Role, TimeClass
from benchmarks.papers.harness.suite import Curve, Suite
from benchmarks.papers.pages.figures import name_headline, name_metric

COLOURS: dict[TimeClass, str] = {
    "order only": "#6b7280",
    "intervals in the history": "#b45309",
    "query time given": "#1d4ed8",
}
"""Distinguishable with red-green colour blindness."""

STYLE: dict[str, Any] = {
    "svg.hashsalt": "kairos",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e5e7eb",
    "legend.frameon": False,
}


class Dot(NamedTuple):
    """A row in a plot."""

    row: str
    label: str
    time_class: TimeClass
    role: Role
    mean: float
    sd: float
    at: float | None
    curve: str | None


def collect_dots(suite: Suite, measured: list[MeasuredRow]) -> list[Dot]:
    """Collect the plot metric of every row, on the headline questions."""
    found = []
    for each in measured:
        if values := each.list_headline(suite, suite.plot):
            point = each.row.point
            position = (None, None) if point is None else (point.at, point.curve)
            mean = statistics.mean(values)
            found.append(
                Dot(
                    each.row.name,
                    each.row.label,
                    each.row.time_class,
                    each.row.role,
                    mean,
                    standard_deviation(values),
                    *position,
                )
            )
    return found


def digest_drawn(drawn: object) -> str:
    """Compute a digest of what a plot shows, as JSON; the file of the plot contains it."""
    return hashlib.sha256(json.dumps(drawn, sort_keys=True).encode()).hexdigest()


def digest_figures(suite: Suite, measured: list[MeasuredRow]) -> str:
    """Compute a digest of the figures and labels of a plot."""
    return digest_drawn(
        [
            suite.title,
            suite.plot,
            suite.figures,
            [each.model_dump() for each in (*suite.panels, *suite.curves)],
            collect_dots(suite, measured),
            collect_references(measured, suite.headline),
            REFERENCES,
        ]
    )


def draw(suite: Suite, measured: list[MeasuredRow]) -> str:
    """Draw a suite: its rows with their spread over seeds, and its curves."""
    every = collect_dots(suite, measured)
    rows = [dot for dot in every if dot.curve is None]
    curves = [
        (curve, points)
        for curve in suite.curves
        if (points := sorted((dot for dot in every if dot.curve == curve.name), key=_position))
    ]
    apart = [
        (panel.title, chosen)
        for panel in suite.panels
        if (chosen := [dot for dot in rows if dot.row in panel.rows])
    ]
    panels = len(curves) + bool(rows) + len(apart)
    height = max(2.6, 0.9 + 0.24 * (len(rows) + len(collect_references(measured, suite.headline))))
    with style.context(STYLE):
        # Rows need room for their labels, curves do not.
        width = 7.2 * (bool(rows) + len(apart)) + 3.9 * len(curves)
        figure = Figure(figsize=(max(width, 7.2), height), layout="constrained")
        axes = [*figure.subplots(1, max(panels, 1), squeeze=False)[0]]
        if rows:
            _draw_rows(axes.pop(0), suite, rows, collect_references(measured, suite.headline))
        for title, chosen in apart:
            axis = axes.pop(0)
            _draw_rows(axis, suite, chosen, {})
            axis.set_title(title, fontsize=9, pad=22)
        for (curve, points), axis in zip(curves, axes, strict=True):
            _draw_curve(axis, suite, curve, points)
        figure.suptitle(suite.title, fontsize=10)
        return format_svg(figure, digest_figures(suite, measured))


def format_svg(figure: Figure, digest: str) -> str:
    """Format a figure as SVG, with the digest of its figures in the metadata."""
    file = io.StringIO()
    metadata = {"Date": None, "Description": f"figures {digest}"}
    figure.savefig(file, format="svg", facecolor="white", metadata=metadata)
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines()) + "\n"


def _draw_rows(
    axis: Axes, suite: Suite, rows: list[Dot], reference_figures: dict[str, dict[str, float]]
) -> None:
    low = _find_lower_bound(rows, reference_figures, suite)
    labels: list[str] = []
    for name, figures in reference_figures.items():
        if suite.plot in figures:
            _draw_reference(axis, suite, figures[suite.plot], low, len(labels))
            labels.append(REFERENCES.get(name, name))
    for time_class, colour in COLOURS.items():
        chosen = [dot for dot in rows if dot.time_class == time_class]
        if not chosen:
            continue
        axis.errorbar(
            [_scale(suite, dot.mean) for dot in chosen],
            range(len(labels), len(labels) + len(chosen)),
            xerr=[_measure_bar(suite, dot) for dot in chosen],
            fmt="o",
            ms=4,
            capsize=2,
            color=colour,
            label=time_class,
        )
        labels += [dot.label for dot in chosen]
    axis.set_yticks(range(len(labels)), labels)
    of_default = {dot.label for dot in rows if dot.role == "default"}
    for tick, label in zip(axis.get_yticklabels(), labels, strict=True):
        tick.set_fontweight("bold" if label in of_default else "normal")
    axis.invert_yaxis()
    axis.set_xlabel(_format_unit(suite))
    axis.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, fontsize=7)


def _find_lower_bound(
    rows: list[Dot], reference_figures: dict[str, dict[str, float]], suite: Suite
) -> float:
    """Find the beginning of the axis, with room for all rows and the best reference only."""
    means = [dot.mean - dot.sd for dot in rows]
    known = [figures[suite.plot] for figures in reference_figures.values() if suite.plot in figures]
    lowest = min([*means, max(known, default=means[0])])
    highest = max([*(dot.mean + dot.sd for dot in rows), *known])
    return lowest - 0.25 * (highest - lowest)


def _draw_reference(axis: Axes, suite: Suite, value: float, low: float, position: int) -> None:
    shown = max(value, low)
    axis.plot(_scale(suite, shown), position, "|" if value >= low else "<", color="black", ms=6)
    if value < low:
        label = f"{_scale(suite, value):.3g}"
        at = (_scale(suite, shown), position)
        axis.annotate(label, at, xytext=(6, 0), textcoords="offset points", va="center", fontsize=8)


def _draw_curve(axis: Axes, suite: Suite, curve: Curve, points: list[Dot]) -> None:
    axis.errorbar(
        [_position(dot) for dot in points],
        [_scale(suite, dot.mean) for dot in points],
        yerr=[_measure_bar(suite, dot) for dot in points],
        fmt="o-",
        ms=4,
        capsize=2,
        color=COLOURS[points[0].time_class],
    )
    axis.set_xticks([_position(dot) for dot in points])
    axis.set_xlabel(curve.axis)
    metric = name_headline(suite, name_metric(suite, suite.plot))
    axis.set_ylabel(f"{metric}\n± sd between seeds", fontsize=8)


def _measure_bar(suite: Suite, dot: Dot) -> float:
    """Measure the bar of a dot; a single seed has no spread to show."""
    return _scale(suite, dot.sd) if dot.sd > 0 else float("nan")


def _position(dot: Dot) -> float:
    return 0.0 if dot.at is None else dot.at


def _scale(suite: Suite, value: float) -> float:
    return 100 * value if suite.figures == "percent" else value


def _format_unit(suite: Suite) -> str:
    metric = name_headline(suite, name_metric(suite, suite.plot))
    return f"{metric}; bars: standard deviation between seeds"
