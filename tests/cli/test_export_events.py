"""The `kairos export-events` command."""

from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

from tests.cli.world import World, kairos
from training.data.sources import read_events


@pytest.fixture
def database(world: World, tmp_path: Path) -> str:
    """A database with the events of the tiny data set."""
    url = f"sqlite:///{tmp_path / 'kairos.db'}"
    kairos("import-events", world.events, "--database", url)
    return url


def test_exported_events_equal_the_imported_ones(
    world: World, database: str, tmp_path: Path
) -> None:
    file, copy = tmp_path / "new" / "events.parquet", f"sqlite:///{tmp_path / 'copy.db'}"
    exported = kairos("export-events", "--database", database, "--output", file)
    assert exported.stdout.splitlines()[-1] == str(file)
    assert read_events(file).equals(read_events(world.events))
    kairos("import-events", file, "--database", copy)
    assert read_events(copy).equals(read_events(world.events))
    assert [path.name for path in file.parent.iterdir()] == ["events.parquet"]


def test_an_export_is_streamed_in_chunks(
    world: World, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("training.data.database_source.CHUNK_ROWS", 7)
    file = tmp_path / "events.parquet"
    kairos("export-events", "--database", database, "--output", file)
    assert read_events(file).equals(read_events(world.events))


def test_until_limits_the_export(world: World, database: str, tmp_path: Path) -> None:
    file = tmp_path / "events.parquet"
    middle = read_events(world.events)["timestamp"].median()
    assert isinstance(middle, datetime)
    until = middle.astimezone(UTC).isoformat()
    kairos("export-events", "--database", database, "--output", file, "--until", until)
    expected = read_events(world.events).filter(pl.col("timestamp") <= middle)
    assert 0 < len(expected) < 240
    assert read_events(file).equals(expected)


def test_a_failed_export_leaves_the_file_unchanged(database: str, tmp_path: Path) -> None:
    file = tmp_path / "events.parquet"
    file.write_text("earlier content")
    for invalid in [("--until", "2011-01-01"), ("--database", f"sqlite:///{tmp_path / 'none.db'}")]:
        source = ("--database", database) if invalid[0] == "--until" else ()
        kairos("export-events", *source, *invalid, "--output", file, exit_code=1)
    assert file.read_text() == "earlier content"
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".events")]


def test_an_empty_database_is_exported_as_an_empty_file(tmp_path: Path) -> None:
    url, file = f"sqlite:///{tmp_path / 'empty.db'}", tmp_path / "events.parquet"
    kairos("migrate", "--database", url)
    kairos("export-events", "--database", url, "--output", file)
    assert read_events(file).is_empty()
