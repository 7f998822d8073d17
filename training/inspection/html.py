"""The report as one HTML file: inline SVG, no scripts, no external resources."""

import math
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from training.inspection.action_names import escape_unprintable
from training.inspection.profile import DataProfile
from training.inspection.recipe_text import format_recipe, format_value
from training.inspection.recommendation import Reason, Recommendation
from training.inspection.sections import BarChart, build_sections

_TEMPLATES = Path(__file__).parent / "templates"
_WIDTH, _HEIGHT = 480, 110
_CHARACTER = 7.2
"""Width of a character of a label, in units of the drawing."""


@dataclass(frozen=True)
class Bar:
    """A bar of a drawing, in its units, from the top left.

    Attributes:
        x: left edge.
        y: upper edge.
        width: of the bar.
        height: of the bar.
        expected: y of the mark to compare with; None for none.
        label: the text below it; empty if there is no room.
        label_x: where the label is anchored.
        anchor: whether that is the start or the middle of the label.
        text: name and value.
    """

    x: float
    y: float
    width: float
    height: float
    expected: float | None
    label: str
    label_x: float
    anchor: str
    text: str


def render_html(profile: DataProfile, recommendation: Recommendation, source: str) -> str:
    """Render the report on a profile, with the recommended recipe.

    Args:
        source: the name of the events in the heading.
    """
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("report.html").render(
        source=escape_unprintable(source),
        profile=profile,
        sections=build_sections(profile),
        reasons=recommendation.reasons,
        recipe=format_recipe(recommendation, f"Recommended for {source}."),
        draw_bars=draw_bars,
        name_highest=name_highest,
        format_setting=_format_setting,
        width=_WIDTH,
        height=_HEIGHT,
    )


def name_highest(chart: BarChart) -> str:
    """Return the text of the highest bar."""
    highest = max(range(len(chart.values)), key=chart.values.__getitem__)
    return chart.texts[highest]


def draw_bars(chart: BarChart) -> list[Bar]:
    """Compute the bars of a chart, and which labels have room below them."""
    highest = max((*chart.values, *(chart.expected or ())), default=0.0) or 1.0
    step = _WIDTH / len(chart.values)
    room = max(map(len, chart.labels)) * _CHARACTER + 6
    fits = room <= step
    every = math.ceil(room / step)
    bars = []
    for number, (label, value) in enumerate(zip(chart.labels, chart.values, strict=True)):
        x, height = number * step + step * 0.1, value / highest * _HEIGHT
        has_label = fits or (number % every == 0 and x + room <= _WIDTH + 6)
        expected = chart.expected[number] / highest if chart.expected is not None else None
        bars.append(
            Bar(
                x=x,
                y=_HEIGHT - height,
                width=step * 0.8,
                height=height,
                expected=None if expected is None else _HEIGHT * (1 - expected),
                label=label if has_label else "",
                label_x=x + step * 0.4 if fits else x,
                anchor="middle" if fits else "start",
                text=f"{label}: {chart.texts[number]}",
            )
        )
    return bars


def _format_setting(reason: Reason) -> str:
    return f"{reason.setting} = {format_value(reason.value)}"
