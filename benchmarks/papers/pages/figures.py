"""Figures, leads and rows of tables, as the pages of results show them."""

import math
import statistics

from benchmarks.papers.harness.measured_rows import standard_deviation
from benchmarks.papers.harness.suite import Suite
from model.errors import TrainingError
from training.evaluation.metrics import Lead


def format_figure(suite: Suite, value: float | None) -> str:
    """Format a figure as the suite does; empty for None."""
    if value is None:
        return ""
    return f"{100 * value:.2f}" if suite.figures == "percent" else f"{value:.4f}"


def name_metric(suite: Suite, metric: str) -> str:
    """Name a metric in a heading, with its unit if figures are shown in percent."""
    return f"{metric}, %" if suite.figures == "percent" else metric


def name_headline(suite: Suite, metric: str) -> str:
    """Name a metric on the suite's headline questions.

    Args:
        metric: its name, with or without a unit.
    """
    return metric + ", after a gap" * (suite.headline == "after_a_gap")


def format_spread(suite: Suite, values: list[float]) -> str:
    """Format the mean over seeds, with the standard deviation if there are several."""
    if not values:
        return ""
    mean = format_figure(suite, statistics.mean(values))
    if len(values) == 1:
        return mean
    return f"{mean} ± {format_figure(suite, standard_deviation(values))}"


def format_signed(suite: Suite, value: float) -> str:
    """Format a figure with its sign."""
    text = format_figure(suite, value)
    return text if text.startswith("-") else f"+{text}"


def format_lead(suite: Suite, lead: Lead) -> str:
    """Format a difference with its 95 % interval, in bold where the interval leaves out zero."""
    if not math.isfinite(lead.low):
        return f"{format_signed(suite, lead.mean)} (no interval of so few users)"
    mean, low, high = (format_signed(suite, value) for value in lead)
    return f"{f'**{mean}**' if lead.is_clear else mean} ({low} to {high})"


def replace_between(page: str, opening: str, closing: str, text: str) -> str:
    """Replace what stands between two markers of a page.

    Raises:
        TrainingError: if one of them is missing.
    """
    before, has_opening, rest = page.partition(opening)
    _, has_closing, after = rest.partition(closing)
    if not (has_opening and has_closing):
        raise TrainingError(
            f"a table is rendered between {opening!r} and {closing!r}, but the page lacks "
            f"{opening if not has_opening else closing!r}; put it back"
        )
    return f"{before}{opening}\n\n{text}\n\n{closing}{after}"


def format_row(cells: list[str]) -> str:
    """Format a row of a table."""
    return f"| {' | '.join(cells)} |"
