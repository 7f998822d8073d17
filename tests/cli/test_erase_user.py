"""The `kairos erase-user` command."""

import json
from pathlib import Path

import polars as pl
import pytest
from click.testing import Result
from typer.testing import CliRunner

from app.db.erasure_log import ErasureLog
from app.db.erasures import Erasure, ErasureRepository
from cli.main import app
from model.errors import KairosError
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
    assert printed == "1 user erased: 8 events and 0 recommendations deleted\n"
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


def erase(database: str, content: bytes, exit_code: int = 0) -> Result:
    command = ["erase-user", "-", "--yes", "--database", database]
    result = CliRunner().invoke(app, command, input=content)
    assert result.exit_code == exit_code, result.output + str(result.exception)
    return result


LOOKALIKES = (
    "007",
    "7",
    "1e5",
    "100000",
    " 8",
    "8 ",
    "8",
    "NaN",
    "true",
    "a\u2028b",
    "ü",
    "u\u0308",
)
"""Different ids that a reader of numbers, of trimmed or of normalised text would confuse."""


@pytest.fixture
def lookalikes(tmp_path: Path) -> str:
    """A database with one event of each."""
    file, url = tmp_path / "lookalikes.jsonl", f"sqlite:///{tmp_path / 'lookalikes.db'}"
    event = {"item_id": "i", "timestamp": 1_700_000_000}
    file.write_text("\n".join(json.dumps({"user_id": it, **event}) for it in LOOKALIKES), "utf-8")
    kairos("import-events", file, "--database", url)
    return url


def test_every_line_of_standard_input_is_one_id(lookalikes: str) -> None:
    result = erase(lookalikes, "\r\n".join(("007", "1e5", " 8", "NaN", "ü")).encode())
    assert result.stdout == "5 users erased: 5 events and 0 recommendations deleted\n"
    left = {*LOOKALIKES} - {"007", "1e5", " 8", "NaN", "ü"}
    assert users(read_events(lookalikes)) == left
    assert erase(lookalikes, b"\xef\xbb\xbf007\n1e5\n").stdout == (
        "0 users erased: 0 events and 0 recommendations deleted, 2 erased before\n"
    )


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"007\ncaf\xe9\n", "line 2: ids are UTF-8, but byte 4 of the line is 0xe9"),
        ("007\n1e5\n".encode("utf-16"), "line 1: ids are UTF-8"),
        (b"007\n\n1e5\n", "line 2: a user id is 1 to 256 characters"),
        (b"007\r1e5\r", "line 1: a user id is 1 to 256 characters"),
        (b"007\n" + b"x" * 257, "line 2: a user id is 1 to 256 characters"),
        (b"", "one id per line, but there was none"),
    ],
)
def test_a_list_with_a_bad_line_erases_nobody(lookalikes: str, content: bytes, line: str) -> None:
    output = erase(lookalikes, content, exit_code=1).output
    assert line in output
    assert "007" not in output
    assert users(read_events(lookalikes)) == {*LOOKALIKES}


def test_an_erasure_without_anything_stored_says_so(lookalikes: str) -> None:
    result = erase(lookalikes, b"007\nsecret\n1e5\nsecret2\n", exit_code=3)
    assert result.stdout == (
        "2 users erased: 2 events and 0 recommendations deleted, nothing stored of 2\n"
    )
    assert "the users of line 2, 4" in result.stderr
    assert "secret" not in result.output
    alone = kairos("erase-user", "nobody", "--yes", "--database", lookalikes, exit_code=3)
    assert "nothing was stored of the user" in alone.stderr
    assert "nobody" not in alone.output


def test_an_interrupted_list_counts_the_erased(
    lookalikes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = ErasureRepository.erase

    def fail_at_third(
        self: ErasureRepository, user_id: str, at: int, *, actor: str, log: ErasureLog
    ) -> Erasure:
        if user_id == "1e5":
            raise KairosError("the database is away")
        return real(self, user_id, at, actor=actor, log=log)

    monkeypatch.setattr(ErasureRepository, "erase", fail_at_third)
    output = erase(lookalikes, b"007\n8\n1e5\nNaN\n", exit_code=1).output
    assert "2 of 4 users were erased, then: the database is away" in output
    assert users(read_events(lookalikes)) == {*LOOKALIKES} - {"007", "8"}


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
