"""Events on their way out, and users who are forgotten."""

from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from cli.main import app
from tests.cli.conftest import World, kairos
from training.data.sources import read_events


@pytest.fixture
def database(world: World, tmp_path: Path) -> str:
    """A database that holds the world's events."""
    url = f"sqlite:///{tmp_path / 'kairos.db'}"
    kairos("import-events", world.events, "--database", url)
    return url


def users(events: pl.DataFrame) -> set[str]:
    return set(events["user_id"])


def test_what_is_exported_is_what_was_imported(world: World, database: str, tmp_path: Path) -> None:
    file, moved = tmp_path / "new" / "events.parquet", f"sqlite:///{tmp_path / 'moved.db'}"
    exported = kairos("export-events", "--database", database, "--output", file)
    assert exported.stdout.splitlines()[-1] == str(file)
    assert read_events(file).equals(read_events(world.events))
    kairos("import-events", file, "--database", moved)
    assert read_events(moved).equals(read_events(world.events))
    assert [path.name for path in file.parent.iterdir()] == ["events.parquet"]


def test_an_export_is_streamed_in_chunks(
    world: World, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("training.data.database_source.CHUNK_ROWS", 7)
    file = tmp_path / "events.parquet"
    kairos("export-events", "--database", database, "--output", file)
    assert read_events(file).equals(read_events(world.events))


def test_an_export_ends_at_an_instant(world: World, database: str, tmp_path: Path) -> None:
    file = tmp_path / "events.parquet"
    middle = read_events(world.events)["timestamp"].median()
    assert isinstance(middle, datetime)
    until = middle.astimezone(UTC).isoformat()
    kairos("export-events", "--database", database, "--output", file, "--until", until)
    expected = read_events(world.events).filter(pl.col("timestamp") <= middle)
    assert 0 < len(expected) < 240
    assert read_events(file).equals(expected)


def test_a_failed_export_leaves_what_was_there(database: str, tmp_path: Path) -> None:
    file = tmp_path / "events.parquet"
    file.write_text("precious")
    for broken in [("--until", "2011-01-01"), ("--database", f"sqlite:///{tmp_path / 'none.db'}")]:
        where = ("--database", database) if broken[0] == "--until" else ()
        kairos("export-events", *where, *broken, "--output", file, exit_code=1)
    assert file.read_text() == "precious"
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".events")]


def test_an_empty_database_is_exported_as_an_empty_file(tmp_path: Path) -> None:
    url, file = f"sqlite:///{tmp_path / 'empty.db'}", tmp_path / "events.parquet"
    kairos("migrate", "--database", url)
    kairos("export-events", "--database", url, "--output", file)
    assert read_events(file).is_empty()


def test_a_user_is_erased_for_good(world: World, database: str, tmp_path: Path) -> None:
    erased = str(read_events(world.events)["user_id"][0])
    answer = kairos("erase-user", erased, "--yes", "--database", database).stdout
    assert answer == "8 events and 0 recommendations deleted\n"
    assert users(read_events(database)) == users(read_events(world.events)) - {erased}
    again = kairos("import-events", world.events, "--database", database).stdout
    assert again == "0 events stored, 232 known already, 8 of erased users left out\n"
    assert kairos("erase-user", erased, "--yes", "--database", database).stdout.startswith("0 ")


def test_an_id_can_be_piped_in_out_of_sight(world: World, database: str) -> None:
    erased = str(read_events(world.events)["user_id"][0])
    command = ["erase-user", "-", "--yes", "--database", database]
    result = CliRunner().invoke(app, command, input=f"{erased}\n")
    assert result.exit_code == 0, result.output
    assert erased not in users(read_events(database))
    assert "user_erased" in result.stderr
    assert erased not in result.stderr.replace("erased_user", "").split()


def test_nobody_is_erased_by_accident(world: World, database: str) -> None:
    named = str(read_events(world.events)["user_id"][0])
    refused = CliRunner().invoke(app, ["erase-user", named, "--database", database], input="n\n")
    assert refused.exit_code == 1
    piped = CliRunner().invoke(app, ["erase-user", "-", "--database", database], input=named)
    assert piped.exit_code == 1
    assert "add --yes" in piped.output
    assert len(read_events(database)) == 240


@pytest.mark.parametrize("user_id", ["", "x" * 257, "nul\0"])
def test_an_id_that_is_none_is_refused(database: str, user_id: str) -> None:
    refusal = kairos("erase-user", user_id, "--yes", "--database", database, exit_code=1).output
    assert "a user id is 1 to 256 characters" in refusal


def test_training_and_batch_output_leave_out_users_erased_from_a_database(
    world: World, store: Path, database: str, tmp_path: Path
) -> None:
    erased = str(read_events(world.events)["user_id"][0])
    kairos("erase-user", erased, "--yes", "--database", database)
    for events, options in [(world.events, ("--erased", database)), (database, ())]:
        output = tmp_path / f"{len(options)}.parquet"
        kairos("recommend", "--events", events, *options, "--store", store, "--output", output)
        told = pl.read_parquet(output)
        assert users(told) == users(read_events(world.events)) - {erased}
