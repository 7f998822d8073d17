"""The `kairos import-events` and `kairos import-items` commands."""

from pathlib import Path

import polars as pl
import pytest

from tests.cli.world import World, kairos
from training.data.sources import read_events, read_items, read_stored_events


@pytest.fixture
def database(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'kairos.db'}"


def test_importing_events_twice_adds_nothing(world: World, database: str) -> None:
    first = kairos("import-events", world.events, "--database", database).stdout
    again = kairos("import-events", world.events, "--database", database).stdout
    assert first == "240 events stored, 0 duplicates\n"
    assert again == "0 events stored, 240 duplicates\n"


def test_implausible_times_are_kept_out_of_the_database(database: str, tmp_path: Path) -> None:
    file, aside = tmp_path / "events.csv", tmp_path / "aside" / "left-out.csv"
    header = "user_id,item_id,timestamp,event_id"
    rows = ("007,i,2999-01-01T00:00:00Z,e1", "u,i,0,", "u,i,2026-01-01T00:00:00Z,")
    file.write_text("\n".join((header, *rows)))
    command = ("import-events", file, "--database", database, "--left-out", aside)
    result = kairos(*command, exit_code=3)
    assert result.stdout == "1 events stored, 0 duplicates, 2 with implausible times left out\n"
    assert "1 in_the_future, 1 too_old" in result.stderr
    assert len(read_events(database)) == 1
    left_out = pl.read_csv(aside, infer_schema=False)
    assert left_out["reason"].to_list() == ["in_the_future", "too_old"]
    assert left_out["user_id"].to_list() == ["007", "u"]
    assert read_stored_events(aside)["event_id"].to_list() == ["e1", None]
    again = kairos("import-events", aside, *command[2:-1], tmp_path / "again.csv", exit_code=3)
    assert again.stdout.startswith("0 events stored, 0 duplicates, 2 with implausible times")
    kairos(*command, exit_code=3)


def test_a_file_for_what_is_left_out_that_cannot_be_written(database: str, tmp_path: Path) -> None:
    file = tmp_path / "events.csv"
    file.write_text("user_id,item_id,timestamp\nu,i,0\nu,i,2026-01-01T00:00:00Z\n")
    command = ("import-events", file, "--database", database, "--left-out")
    refused = kairos(*command, file / "aside.csv", exit_code=1)
    assert refused.stdout.startswith("1 events stored")
    assert "name another with --left-out" in refused.stderr
    again = kairos(*command, tmp_path / "aside.csv", exit_code=3)
    assert again.stdout.startswith("0 events stored, 1 duplicates, 1 with implausible times")


def test_items_are_imported(world: World, database: str) -> None:
    assert kairos("import-items", world.items, "--database", database).stdout == "24 items stored\n"


def test_a_refused_item_is_named_by_file_and_row(database: str, tmp_path: Path) -> None:
    file = tmp_path / "items.csv"
    file.write_text(f"item_id,title\na,A lamp\nb,{'long' * 1000}\n")
    refused = kairos("import-items", file, "--database", database, exit_code=1)
    assert f"{file}: row 2 (item 'b'), column 'title'" in refused.stderr
    assert "at most 1,024 characters" in refused.stderr
    assert len(refused.stderr.splitlines()) == 1
    assert read_items(database).is_empty()


@pytest.mark.parametrize("url", ["mysql://host/name", "kairos.db"])
def test_an_unsupported_database_is_rejected(world: World, url: str) -> None:
    output = kairos("import-events", world.events, "--database", url, exit_code=1).output
    assert "sqlite:///path/to/file or postgresql://" in output
