"""The `kairos inspect` command, and training without a recipe."""

from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from cli.inspect import render_chart
from model.bundle.reading import find_bundle
from model.store.opening import open_predictor
from tests.cli.world import World, kairos
from training.config import RunConfig
from training.inspection.sections import BarChart


def test_a_report_is_printed_with_figures_plots_and_a_recipe(world: World) -> None:
    output = kairos("inspect", world.events, "--items", world.items).output
    assert "240" in output
    assert "Recommended recipe" in output
    assert 'data.predict = "next_event"' in output
    assert "█" in output
    assert max(map(len, output.splitlines()[:-1])) <= 120


def test_a_recipe_is_written_that_loads(world: World, tmp_path: Path) -> None:
    recipe = tmp_path / "new" / "mine.toml"
    printed = kairos("inspect", world.events, "--recipe", recipe).stdout
    assert printed.split() == [str(recipe)]
    assert RunConfig.read(recipe).data.predict == "next_event"
    assert "240 events of 30 users" in recipe.read_text().replace("\n# ", " ")


def test_options_decide_settings_of_the_recipe(world: World, tmp_path: Path) -> None:
    recipe = tmp_path / "mine.toml"
    options = ["--predict", "next_basket", "--exclude-seen", "--ignore-action", "no such"]
    kairos("inspect", world.events, *options, "--recipe", recipe)
    data = RunConfig.read(recipe).data
    assert (data.predict, data.exclude_seen) == ("next_basket", True)
    assert data.ignored_actions == ("no such",)


def test_a_time_zone_is_that_of_report_and_recipe(world: World, tmp_path: Path) -> None:
    recipe, zone = tmp_path / "mine.toml", ("--time-zone", "Asia/Kolkata")
    kairos("inspect", world.events, *zone, "--recipe", recipe)
    assert RunConfig.read(recipe).data.time_zone == "Asia/Kolkata"
    assert "Calendar (Asia/Kolkata)" in kairos("inspect", world.events, *zone).output


def test_an_unknown_time_zone_is_a_wrong_option(world: World) -> None:
    output = kairos("inspect", world.events, "--time-zone", "Mars", exit_code=2).output
    assert "IANA" in output


def test_a_page_is_written(world: World, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    kairos("inspect", world.events, "--html", page)
    assert page.read_text().startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("user_id,item_id,timestamp\n", "the source has none; check the path"),
        ("user_id,item_id\nu,i\n", "a column 'timestamp' is required"),
    ],
)
def test_unusable_events_are_described_on_one_line(
    content: str, message: str, tmp_path: Path
) -> None:
    file = tmp_path / "events.csv"
    file.write_text(content)
    (line,) = kairos("inspect", file, exit_code=1).output.splitlines()
    assert message in line


def test_a_chart_fits_its_room_and_shows_small_values() -> None:
    labels = tuple(map(str, range(24)))
    values = (1_000.0, 1.0, 0.0, *(500.0,) * 21)
    lines = render_chart(BarChart("t", labels, values, labels, "s"), 76).plain.split("\n")
    assert [line[0] for line in lines] == ["█", "█", "█", "0"]
    assert lines[2][3] == "▁"
    assert lines[2][6] == " "
    assert max(map(len, lines)) <= 76


def test_more_bars_than_room_are_averaged() -> None:
    values = (*(0.0,) * 59, 9.0)
    labels = tuple(f"day {number}" for number in range(60))
    lines = render_chart(BarChart("t", labels, values, labels, "s"), 36).plain.split("\n")
    assert max(map(len, lines)) <= 36
    assert lines[2].endswith("█")


def test_a_narrow_terminal_shows_every_column(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Narrow(Console):
        def __init__(self, **settings: Any) -> None:
            super().__init__(**{**settings, "width": 40})

    monkeypatch.setattr("cli.inspect.Console", Narrow)
    lines = kairos("inspect", world.events).output.splitlines()
    (mean,) = (line for line in lines if line.startswith("│ mean"))
    assert len(mean.strip("│").split()) >= 5


@pytest.mark.slow
def test_training_without_a_recipe_uses_the_recommended_one(world: World, tmp_path: Path) -> None:
    output = kairos(
        "train", "--events", world.events, "--output", tmp_path, "--threads", "1"
    ).output
    assert "no recipe given: using the recommended one (next_event)" in output
    assert "to check: few events" in " ".join(output.split())
    recipe = open_predictor(find_bundle(tmp_path)).bundle.manifest.provenance["recipe"]
    assert RunConfig.model_validate(recipe) == RunConfig.read(tmp_path / "recipe.toml")
