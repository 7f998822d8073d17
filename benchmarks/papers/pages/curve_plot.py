"""A plot of learning curves: the validation metric against the processor time of the fit."""

from typing import NamedTuple

from matplotlib import color_sequences, style
from matplotlib.figure import Figure

from benchmarks.papers.harness.measured_rows import MeasuredRow
from benchmarks.papers.harness.row import Role
from benchmarks.papers.harness.suite import Suite
from benchmarks.papers.pages.plot import STYLE, digest_drawn, format_svg

COMPARED: tuple[Role, ...] = ("default", "peer", "rival", "variant", "control")
"""The rows whose learning curves are drawn, in this order; if there are none, all are."""

MOST_CURVES = 20
"""Rows whose learning curves are drawn, at most."""


class LearningCurve(NamedTuple):
    """The learning curve of one run."""

    label: str
    role: Role
    seed: int
    minutes: list[float]
    """Processor time since the beginning of the fit, validation included."""
    values: list[float]
    """The suite's plot metric on the validation questions."""


def collect_learning_curves(suite: Suite, measured: list[MeasuredRow]) -> list[LearningCurve]:
    """Collect the curves of the default and of all rows but methods and references.

    Without such rows, those of all. Each is of the row's first seed; rows that are fitted by
    counting have none.
    """
    curves = [
        LearningCurve(
            each.row.label,
            each.row.role,
            record.seed,
            [
                # The axis is logarithmic.
                max(round(point.cpu_seconds / 60, 3), 0.001)
                for point in record.curve
                if point.validation
            ],
            [point.validation[suite.plot] for point in record.curve if point.validation],
        )
        for each in measured
        for record in each.records[:1]
        if any(suite.plot in point.validation for point in record.curve)
    ]
    compared = [curve for role in COMPARED for curve in curves if curve.role == role]
    return (compared or curves)[:MOST_CURVES]


def digest_learning_curves(suite: Suite, curves: list[LearningCurve]) -> str:
    """Compute a digest of the figures and labels of a plot."""
    return digest_drawn([suite.title, suite.plot, curves])


def draw_learning_curves(suite: Suite, curves: list[LearningCurve]) -> str:
    """Draw one line per row; those of peers are dashed, and the default's is thick."""
    with style.context(STYLE):
        figure = Figure(figsize=(9.6, 4.2), layout="constrained")
        axis = figure.subplots()
        colours = color_sequences["tab20" if len(curves) > 10 else "tab10"]
        for curve, colour in zip(curves, colours, strict=False):
            axis.plot(
                curve.minutes,
                curve.values,
                ls="--" if curve.role == "peer" else "-",
                lw=2.0 if curve.role == "default" else 1.1,
                marker="o",
                ms=2.5,
                color=colour,
                label=curve.label,
            )
        axis.set_xscale("log")
        axis.xaxis.set_major_formatter("{x:g}")
        axis.set_xlabel("minutes of one core, fit and validation")
        axis.set_ylabel(f"{suite.plot}, validation")
        axis.legend(fontsize=6, loc="center left", bbox_to_anchor=(1, 0.5))
        has_peers = any(curve.role == "peer" for curve in curves)
        peers = " (peers dashed)" * has_peers
        figure.suptitle(f"{suite.title}: learning curves{peers}", fontsize=10)
        return format_svg(figure, digest_learning_curves(suite, curves))
