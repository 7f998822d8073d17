"""Renders the page of results, its plots, and the table of docs/models.md."""

from pathlib import Path

from benchmarks.papers.harness.measured_suite import read_measured_suites
from benchmarks.papers.harness.suite import Suite
from benchmarks.papers.harness.suite_result import list_results
from benchmarks.papers.pages.attention_plot import (
    digest_curves,
    draw_attention,
    find_attention_curves,
)
from benchmarks.papers.pages.curve_plot import (
    collect_learning_curves,
    digest_learning_curves,
    draw_learning_curves,
)
from benchmarks.papers.pages.lead_plot import digest_leads, draw_leads
from benchmarks.papers.pages.models_table import update_models_table
from benchmarks.papers.pages.plot import digest_figures, draw
from benchmarks.papers.pages.summary_page import render_summary, update_readme
from benchmarks.papers.pages.tables_page import render_tables

MODELS = Path("docs") / "models.md"
"""The page of all models, relative to the root of the repository."""

SUMMARY = Path("docs") / "results.md"
"""The page that sums up all suites, relative to the root of the repository."""


def render(folder: Path) -> list[Path]:
    """Render the page, and the plots whose figures differ from the records.

    In `benchmarks/papers` of a checkout, its pages outside the folder are rendered too.

    Args:
        folder: of suites/, results/ and plots/.

    Returns:
        The written files.
    """
    page = folder / "README.md"
    written = [page]
    checkout = _find_checkout(folder)
    suites = read_measured_suites(folder)
    for suite, measured in ((each.suite, each.measured) for each in suites):
        plot = get_plot_path(folder, suite)
        if measured and not has_digest(plot, digest_figures(suite, measured)):
            plot.parent.mkdir(exist_ok=True)
            plot.write_text(draw(suite, measured), "utf-8")
            written.append(plot)
        curve_plot = get_curve_plot_path(folder, suite)
        learning = collect_learning_curves(suite, measured)
        if learning and not has_digest(curve_plot, digest_learning_curves(suite, learning)):
            curve_plot.write_text(draw_learning_curves(suite, learning), "utf-8")
            written.append(curve_plot)
        attention, curves = get_attention_plot_path(folder, suite), find_attention_curves(measured)
        if curves and not has_digest(attention, digest_curves(suite.title, curves)):
            attention.write_text(draw_attention(suite.title, curves), "utf-8")
            written.append(attention)
    if results := list_results(suites):
        picture = folder / "plots" / "leads.svg"
        if not has_digest(picture, digest_leads(results)):
            picture.write_text(draw_leads(results), "utf-8")
            written.append(picture)
        if checkout is not None:
            summary, readme = checkout / SUMMARY, checkout / "README.md"
            summary.write_text(render_summary(results, suites), "utf-8")
            readme.write_text(update_readme(readme.read_text("utf-8"), results), "utf-8")
            written += [summary, readme]
    page.write_text(render_tables(suites, is_ours=checkout is not None), "utf-8")
    if checkout is not None and (models := checkout / MODELS).exists():
        models.write_text(update_models_table(models.read_text("utf-8"), suites), "utf-8")
        written.append(models)
    return written


def _find_checkout(folder: Path) -> Path | None:
    """Find the checkout that a folder is `benchmarks/papers` of; None for any other folder."""
    path = folder.resolve()
    checkout = path.parent.parent
    is_papers = path == checkout / "benchmarks" / "papers"
    return checkout if is_papers and (checkout / "docs").is_dir() else None


def get_plot_path(folder: Path, suite: Suite) -> Path:
    """Return the file of a suite's plot."""
    return folder / "plots" / f"{suite.name}.svg"


def get_curve_plot_path(folder: Path, suite: Suite) -> Path:
    """Return the file of a suite's plot of learning curves; not every suite has one."""
    return folder / "plots" / f"{suite.name}-curves.svg"


def get_attention_plot_path(folder: Path, suite: Suite) -> Path:
    """Return the file of a suite's plot of attention over time; not every suite has one."""
    return folder / "plots" / f"{suite.name}-attention.svg"


def has_digest(plot: Path, digest: str) -> bool:
    """Return whether a plot was drawn from the figures of a digest."""
    return plot.exists() and digest in plot.read_text("utf-8")
