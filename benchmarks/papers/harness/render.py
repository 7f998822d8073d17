"""Writes the page of recorded results and its plots beside the records."""

from pathlib import Path

from benchmarks.papers.harness.attention_plot import digest_of_curves, draw_attention
from benchmarks.papers.harness.plot import digest_of, draw
from benchmarks.papers.harness.reached import with_numbers
from benchmarks.papers.harness.results import curves_of, read_measured
from benchmarks.papers.harness.suite import Suite
from benchmarks.papers.harness.table import render_page

ZOO = Path("docs") / "models.md"
"""The page of the zoo, from the root of the project that the folder stands in."""


def render(folder: Path) -> list[Path]:
    """Bring the pages up to date, and the plots that show other figures than the records.

    Returns:
        The files that were written.
    """
    page = folder / "README.md"
    written = [page]
    for file in sorted((folder / "suites").glob("*.toml")):
        suite = Suite.read(file)
        measured = read_measured(folder, suite)
        plot = plot_of(folder, suite)
        if measured and not shows(plot, digest_of(suite, measured)):
            plot.parent.mkdir(exist_ok=True)
            plot.write_text(draw(suite, measured), "utf-8")
            written.append(plot)
        attention, curves = attention_plot_of(folder, suite), curves_of(measured)
        if curves and not shows(attention, digest_of_curves(curves)):
            attention.write_text(draw_attention(suite.title, curves), "utf-8")
            written.append(attention)
    page.write_text(render_page(folder), "utf-8")
    zoo = folder.parent.parent / ZOO
    if zoo.exists():
        zoo.write_text(with_numbers(zoo.read_text("utf-8"), folder), "utf-8")
        written.append(zoo)
    return written


def plot_of(folder: Path, suite: Suite) -> Path:
    """The file of a suite's plot."""
    return folder / "plots" / f"{suite.name}.svg"


def attention_plot_of(folder: Path, suite: Suite) -> Path:
    """The file of a suite's plot of attention over time, where a model of it has such curves."""
    return folder / "plots" / f"{suite.name}-attention.svg"


def shows(plot: Path, digest: str) -> bool:
    """Whether a plot was drawn from the figures of that digest."""
    return plot.exists() and digest in plot.read_text("utf-8")
