"""The `kairos inspect` command: what events are like, and which recipe suits them."""

import math
import sys
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

import typer
from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from cli.console import exit_on_error, print_message
from cli.options import Erased, Items, load_erasures
from model.time_zone import check_time_zone
from training.config import DataConfig
from training.data.sources import format_location, read_events, read_items
from training.data.split import Predict
from training.inspection.html import render_html
from training.inspection.profile import DataProfile, profile_events
from training.inspection.recipe_text import format_recipe, format_value
from training.inspection.recommendation import Recommendation, recommend_recipe
from training.inspection.sections import BarChart, Fact, FactTable, Section, build_sections

_BLOCKS = " ▁▂▃▄▅▆▇█"
_CHART_ROWS = 3
_WIDEST_COLUMN = 8
_NARROW = 72
"""Characters per line below which a table of many columns is turned."""


def _check_time_zone(name: str | None) -> str | None:
    try:
        return None if name is None else check_time_zone(name)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def inspect_command(
    events: Annotated[
        str,
        typer.Argument(
            help="A Parquet, CSV, TSV or JSONL file, a directory or glob of them, or the service's "
            "database URL."
        ),
    ],
    items: Items = None,
    predict: Annotated[
        Predict | None,
        typer.Option(help="The target of the recipe; decided from the data by default."),
    ] = None,
    exclude_seen: Annotated[
        bool | None,
        typer.Option(
            help="Whether the recipe leaves out items of the history; decided from the data by "
            "default."
        ),
    ] = None,
    ignore_action: Annotated[
        list[str] | None,
        typer.Option(help="An action whose events are left out; may be repeated."),
    ] = None,
    time_zone: Annotated[
        str | None,
        typer.Option(
            callback=_check_time_zone,
            help="Where the users live, such as Europe/London: the zone of hours, weekdays and "
            "months. UTC by default.",
        ),
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write the report as one HTML file.")] = None,
    recipe: Annotated[
        Path | None, typer.Option(help="Write the recommended recipe as a TOML file.")
    ] = None,
    erased: Erased = None,
) -> None:
    """Describe events, and recommend a recipe with a reason for every setting."""
    with exit_on_error():
        data = build_data_config(
            predict=predict,
            exclude_seen=exclude_seen,
            ignored_actions=tuple(ignore_action or ()),
            time_zone=time_zone,
        )
        event_table = read_events(events, erasures=load_erasures(erased))
        item_table = None if items is None else read_items(items)
        profile = profile_events(event_table, item_table, data=data)
        recommendation = recommend_recipe(profile, data)
        source = format_location(events)
        if html is None and recipe is None:
            print_inspection(profile, recommendation, source)
        if html is not None:
            write_text(html, render_html(profile, recommendation, source))
        if recipe is not None:
            write_text(recipe, format_recipe(recommendation, describe_source(profile, source)))


def build_data_config(
    *,
    predict: Predict | None,
    exclude_seen: bool | None,
    ignored_actions: tuple[str, ...],
    time_zone: str | None,
) -> DataConfig:
    """Build the `[data]` table of a recipe in which only the given settings are set."""
    settings: dict[str, Any] = {"ignored_actions": ignored_actions} if ignored_actions else {}
    if predict is not None:
        settings["predict"] = predict
    if exclude_seen is not None:
        settings["exclude_seen"] = exclude_seen
    if time_zone is not None:
        settings["time_zone"] = time_zone
    return DataConfig(**settings)


def describe_source(profile: DataProfile, source: str) -> str:
    """Describe what a recipe was recommended for, in one sentence."""
    return (
        f"Recommended by kairos inspect for {source}: {profile.events:,} events of "
        f"{profile.users:,} users and {profile.items:,} items."
    )


def write_text(path: Path, text: str) -> None:
    """Write a text file, and print its path to standard output."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    typer.echo(path)


def print_inspection(profile: DataProfile, recommendation: Recommendation, source: str) -> None:
    """Print the report to standard output."""
    console = Console(file=sys.stdout, width=None if sys.stdout.isatty() else 120, highlight=False)
    for section in build_sections(profile):
        console.print(_render_section(section, console.width - 4))
    console.print(
        Panel(
            _render_reasons(recommendation), title="[bold]Recommended recipe[/]", title_align="left"
        )
    )
    print_message(
        f"write it with [bold]kairos inspect {escape(source)} --recipe my.toml[/]; "
        "--html FILE writes this report as a page"
    )


def _render_section(section: Section, width: int) -> RenderableType:
    parts: list[RenderableType] = []
    if section.facts:
        parts.append(_render_facts(section.facts))
    if section.table is not None:
        content = section.table if width >= _NARROW else _make_narrow(section.table)
        parts += [*[""] * len(parts), _render_table(content)]
    for chart in section.charts:
        parts += ["", f"[bold]{escape(chart.title)}[/]", render_chart(chart, width)]
    return Panel(Group(*parts), title=f"[bold]{section.title}[/]", title_align="left")


def _render_facts(facts: tuple[Fact, ...]) -> Table:
    grid = Table.grid(padding=(0, 2))
    has_values = any(fact.value for fact in facts)
    for fact in facts:
        cells = (fact.label, fact.value, fact.remark) if has_values else (fact.label, fact.remark)
        grid.add_row(*map(escape, cells[:-1]), f"[dim]{escape(cells[-1])}[/]")
    return grid


def _make_narrow(content: FactTable) -> FactTable:
    """Swap rows and columns where that leaves fewer columns."""
    if len(content.rows) + 1 >= len(content.headers):
        return content
    columns = zip(content.headers, *content.rows, strict=True)
    headers, *rows = (tuple(column) for column in columns)
    return FactTable(headers, tuple(rows))


def _render_table(content: FactTable) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for number, header in enumerate(content.headers):
        # Names stay on one line, heads may wrap.
        table.add_column(
            escape(header),
            justify="right" if number else "left",
            header_style="dim",
            no_wrap=number == 0,
        )
    for row in content.rows:
        table.add_row(*map(escape, row))
    return table


def _render_reasons(recommendation: Recommendation) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("setting", header_style="dim", no_wrap=True)
    table.add_column("reason", header_style="dim")
    previous = ""
    for one in recommendation.reasons:
        setting = f"{one.setting} = {format_value(one.value)}"
        # A reason that several settings share is written once.
        reason = "" if one.reason == previous else one.reason
        table.add_row(escape(setting), f"[dim]{escape(reason)}[/]")
        previous = one.reason
    return table


def render_chart(chart: BarChart, room: int) -> Text:
    """Render bars as rows of block characters, with the labels that fit below.

    Args:
        room: characters per line.
    """
    # Bars without room are averaged with their neighbours.
    merged = -(-len(chart.values) // max(room, 1))
    labels = chart.labels[::merged]
    values = [
        fmean(chart.values[begin : begin + merged]) for begin in range(0, len(chart.values), merged)
    ]
    highest = max(values, default=0.0) or 1.0
    count = len(values)
    longest = max(map(len, labels))
    width = max(1, min(longest + 1, _WIDEST_COLUMN, room // count))
    steps = _CHART_ROWS * (len(_BLOCKS) - 1)
    # Every value above zero is visible.
    levels = [math.ceil(value / highest * steps - 1e-9) for value in values]
    lines = []
    for row in reversed(range(_CHART_ROWS)):
        blocks = (_BLOCKS[min(max(level - row * 8, 0), 8)] for level in levels)
        lines.append("".join(block * max(1, width - 1) + " " * (width > 1) for block in blocks))
    text = Text("\n".join(lines) + "\n", style="blue", no_wrap=True, overflow="crop")
    text.append(_place_labels(labels, width), style="dim")
    return text


def _place_labels(labels: tuple[str, ...], width: int) -> str:
    """Place labels below columns of a width, leaving out those without room."""
    line = ""
    for number, label in enumerate(labels):
        if number * width >= len(line) + (1 if line else 0):
            line = line.ljust(number * width) + label
    return line
