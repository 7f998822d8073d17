"""The `kairos erase-user` command."""

from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from cli.main import app
from tests.cli.world import World, kairos
from training.data.sources import read_events


@pytest.fixture
def database(world: World, tmp_path: Path) -> str:
    """A database with the events of the tiny data set."""
    url = f"sqlite:///{tmp_path / 'kairos.db'}"
    kairos("import-events", world.events, "--database", url)
    return url


def users(events: pl.DataFrame) -> set[str]:
    return set(events["user_id"])


def test_an_erased_user_stays_erased_after_an_import(
    world: World, database: str, tmp_path: Path
) -> None:
    erased = str(read_events(world.events)["user_id"][0])
    printed = kairos("erase-user", erased, "--yes", "--database", database).stdout
    assert printed == "8 events and 0 recommendations deleted\n"
    assert users(read_events(database)) == users(read_events(world.events)) - {erased}
    again = kairos("import-events", world.events, "--database", database).stdout
    assert again == "0 events stored, 232 duplicates, 8 of erased users left out\n"
    assert kairos("erase-user", erased, "--yes", "--database", database).stdout.startswith("0 ")


def test_an_id_from_standard_input_is_not_logged(world: World, database: str) -> None:
    erased = str(read_events(world.events)["user_id"][0])
    command = ["erase-user", "-", "--yes", "--database", database]
    result = CliRunner().invoke(app, command, input=f"{erased}\n")
    assert result.exit_code == 0, result.output
    assert erased not in users(read_events(database))
    assert "user_erased" in result.stderr
    assert erased not in result.stderr.replace("erased_user", "").split()


def test_erasure_needs_a_confirmation(world: World, database: str) -> None:
    user_id = str(read_events(world.events)["user_id"][0])
    declined = CliRunner().invoke(app, ["erase-user", user_id, "--database", database], input="n\n")
    assert declined.exit_code == 1
    piped = CliRunner().invoke(app, ["erase-user", "-", "--database", database], input=user_id)
    assert piped.exit_code == 1
    assert "add --yes" in piped.output
    assert len(read_events(database)) == 240


@pytest.mark.parametrize("user_id", ["", "x" * 257, "nul\0"])
def test_a_malformed_user_id_is_rejected(database: str, user_id: str) -> None:
    output = kairos("erase-user", user_id, "--yes", "--database", database, exit_code=1).output
    assert "a user id is 1 to 256 characters" in output


def test_recommend_leaves_out_erased_users(
    world: World, store: Path, database: str, tmp_path: Path
) -> None:
    erased = str(read_events(world.events)["user_id"][0])
    kairos("erase-user", erased, "--yes", "--database", database)
    for events, options in [(world.events, ("--erased", database)), (database, ())]:
        output = tmp_path / f"{len(options)}.parquet"
        kairos("recommend", "--events", events, *options, "--store", store, "--output", output)
        recommended = pl.read_parquet(output)
        assert users(recommended) == users(read_events(world.events)) - {erased}
