"""Renders the pages of results, their plots, and the tables of README.md and docs/models.md."""

from pathlib import Path

from benchmarks.papers.harness.measured_suite import read_measured_suites
from benchmarks.papers.harness.record import write_text_atomically
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
from benchmarks.papers.pages.tables_page import TITLE, render_tables
from model.errors import TrainingError

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
        The written files, each of which is written over at once.

    Raises:
        TrainingError: if a record is broken, or if README.md of the folder is another page.
    """
    page = folder / "README.md"
    _check_page(page)
    written = [page]
    checkout = _find_checkout(folder)
    suites = read_measured_suites(folder)
    for suite, measured in ((each.suite, each.measured) for each in suites):
        plot = get_plot_path(folder, suite)
        if measured and not has_digest(plot, digest_figures(suite, measured)):
            plot.parent.mkdir(exist_ok=True)
            write_text_atomically(plot, draw(suite, measured))
            written.append(plot)
        curve_plot = get_curve_plot_path(folder, suite)
        learning = collect_learning_curves(suite, measured)
        if learning and not has_digest(curve_plot, digest_learning_curves(suite, learning)):
            write_text_atomically(curve_plot, draw_learning_curves(suite, learning))
            written.append(curve_plot)
        attention, curves = get_attention_plot_path(folder, suite), find_attention_curves(measured)
        if curves and not has_digest(attention, digest_curves(suite.title, curves)):
            write_text_atomically(attention, draw_attention(suite.title, curves))
            written.append(attention)
    if results := list_results(suites):
        picture = folder / "plots" / "leads.svg"
        if not has_digest(picture, digest_leads(results)):
            write_text_atomically(picture, draw_leads(results))
            written.append(picture)
        if checkout is not None:
            summary, readme = checkout / SUMMARY, checkout / "README.md"
            write_text_atomically(summary, render_summary(results, suites))
            write_text_atomically(readme, update_readme(readme.read_text("utf-8"), results))
            written += [summary, readme]
    write_text_atomically(page, render_tables(suites, is_ours=checkout is not None))
    if checkout is not None and (models := checkout / MODELS).exists():
        write_text_atomically(models, update_models_table(models.read_text("utf-8"), suites))
        written.append(models)
    return written


def _check_page(page: Path) -> None:
    """Check that a page, if it is there, is one that was rendered."""
    if page.exists() and not page.read_text("utf-8").startswith(TITLE):
        raise TrainingError(
            f"records are rendered into a page that begins with {TITLE.strip()!r}, but {page} is "
            "another; move it, or set another folder with --folder"
        )


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
    """Return whether a plot was drawn from the figures of a digest, to its end."""
    if not plot.exists():
        return False
    drawn = plot.read_text("utf-8", errors="replace")
    return digest in drawn and drawn.rstrip().endswith("</svg>")
