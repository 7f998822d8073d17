"""The `kairos import-events` and `kairos import-items` commands."""

from pathlib import Path

import pytest

from tests.cli.world import World, kairos


@pytest.fixture
def database(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'kairos.db'}"


def test_importing_events_twice_adds_nothing(world: World, database: str) -> None:
    first = kairos("import-events", world.events, "--database", database).stdout
    again = kairos("import-events", world.events, "--database", database).stdout
    assert first == "240 events stored, 0 duplicates\n"
    assert again == "0 events stored, 240 duplicates\n"


def test_items_are_imported(world: World, database: str) -> None:
    assert kairos("import-items", world.items, "--database", database).stdout == "24 items stored\n"


@pytest.mark.parametrize("url", ["mysql://host/name", "kairos.db"])
def test_an_unsupported_database_is_rejected(world: World, url: str) -> None:
    output = kairos("import-events", world.events, "--database", url, exit_code=1).output
    assert "sqlite:///path/to/file or postgresql://" in output
