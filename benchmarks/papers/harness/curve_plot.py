"""A plot of learning curves: the validation metric against the processor time of the fit."""

import hashlib
import json

from matplotlib import style
from matplotlib.figure import Figure

from benchmarks.papers.harness.plot import STYLE, format_svg
from benchmarks.papers.harness.results import LearningCurve
from benchmarks.papers.harness.suite import Suite


def digest_learning_curves(curves: list[LearningCurve]) -> str:
    """Compute a digest of the figures of a plot, which its file contains."""
    return hashlib.sha256(json.dumps(curves).encode()).hexdigest()


def draw_learning_curves(suite: Suite, curves: list[LearningCurve]) -> str:
    """Draw one line per run; the runs of a row have one colour, those of peers are dashed."""
    with style.context(STYLE):
        figure = Figure(figsize=(7.2, 3.8), layout="constrained")
        axis = figure.subplots()
        labels: list[str] = []
        for curve in curves:
            is_first = curve.label not in labels
            labels += [curve.label] * is_first
            axis.plot(
                curve.minutes,
                curve.values,
                ls="--" if curve.role == "peer" else "-",
                lw=2.0 if curve.role == "default" else 1.1,
                marker="o",
                ms=2.5,
                color=f"C{labels.index(curve.label)}",
                label=curve.label if is_first else None,
            )
        axis.set_xscale("log")
        axis.xaxis.set_major_formatter("{x:g}")
        axis.set_xlabel("minutes of one core, fit and validation")
        axis.set_ylabel(f"{suite.plot}, validation")
        axis.legend(fontsize=7, loc="best")
        figure.suptitle(f"{suite.title}: learning curves", fontsize=10)
        return format_svg(figure, digest_learning_curves(curves))
