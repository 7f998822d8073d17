"""kairos models: list, show, activate, rollback, and what they leave in the database."""

import getpass
import json
from pathlib import Path

import pytest
from pydantic import JsonValue

from app.db.database import Database
from app.models.repository import Change, ModelChangeRepository
from migrations.run import upgrade
from model.store.store import CURRENT, BundleStore
from model.store.traffic import Traffic
from tests.app import tiny_bundle
from tests.cli.conftest import kairos


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A store with three versions, none of them current."""
    for seed in (1, 2, 3):
        tiny_bundle.publish(tmp_path / "bundles", seed=seed, activate=False)
    return tmp_path / "bundles"


@pytest.fixture
def database_url(tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path / 'kairos.db'}"
    upgrade(url)
    return url


def changes(database_url: str) -> list[Change]:
    database = Database(database_url, threads=1, queue=0)
    found = database.read_blocking(lambda session: ModelChangeRepository(session).all())
    database.close()
    return found


def test_an_activation_is_written_down_with_who_and_why(root: Path, database_url: str) -> None:
    store = BundleStore(root)
    version = store.versions()[0]
    told = kairos(
        *("models", "activate", version, "--store", root, "--database", database_url),
        *("--reason", "a first one"),
    ).output
    assert told.strip() == version
    assert store.current() == version
    (change,) = changes(database_url)
    assert change.actor == f"cli:{getpass.getuser()}"
    assert (change.change, change.version, change.previous_version, change.reason) == (
        "activate",
        version,
        None,
        "a first one",
    )


def test_a_rollback_goes_back_one_version_at_a_time(root: Path, database_url: str) -> None:
    store = BundleStore(root)
    place = ("--store", root, "--database", database_url)
    first, second, third = store.versions()
    for version in (first, second, third):
        kairos("models", "activate", version, *place)
    assert kairos("models", "rollback", *place).output.strip() == second
    assert store.current() == second
    assert kairos("models", "rollback", *place).output.strip() == first
    refusal = kairos("models", "rollback", *place, exit_code=1).output
    assert "activate a version by its name" in refusal
    assert store.current() == first
    assert [change.change for change in changes(database_url)] == ["activate"] * 3 + [
        "rollback"
    ] * 2


def test_publishing_is_written_down_as_such(root: Path, database_url: str, tmp_path: Path) -> None:
    version = BundleStore(root).versions()[0]
    place = ("--store", tmp_path / "other", "--database", database_url)
    kairos("publish", root / version, *place)
    assert [(change.change, change.version) for change in changes(database_url)] == [
        ("publish", version)
    ]


@pytest.mark.parametrize("command", ["activate", "publish"])
@pytest.mark.parametrize("database", ["missing.db", "empty.db"])
def test_without_a_database_a_version_becomes_current_with_a_warning(
    root: Path, tmp_path: Path, command: str, database: str
) -> None:
    (tmp_path / "empty.db").touch()
    version = BundleStore(root).versions()[0]
    asked = (
        ("models", "activate", version, "--store", root)
        if command == "activate"
        else ("publish", root / version, "--store", tmp_path / "other")
    )
    told = kairos(*asked, "--database", f"sqlite:///{tmp_path / database}")
    assert told.stdout.strip() == version
    assert "warning" in told.stderr
    assert "not written down" in told.stderr
    assert BundleStore(Path(asked[-1])).current() == version
    assert not (tmp_path / "missing.db").exists()


def test_without_a_database_nobody_knows_what_to_roll_back_to(root: Path, tmp_path: Path) -> None:
    store = BundleStore(root)
    store.activate(store.versions()[0])
    refusal = kairos(
        *("models", "rollback", "--store", root),
        *("--database", f"sqlite:///{tmp_path / 'missing.db'}"),
        exit_code=1,
    ).output
    assert "does not exist" in refusal
    assert store.current() == store.versions()[0]


def test_a_broken_version_does_not_become_current(root: Path, database_url: str) -> None:
    store = BundleStore(root)
    good, broken, _ = store.versions()
    tiny_bundle.damage(root, broken)
    place = ("--store", root, "--database", database_url)
    kairos("models", "activate", good, *place)
    for asked in (("models", "activate", broken), ("publish", root / broken)):
        assert "altered" in kairos(*asked, *place, exit_code=1).output
    assert store.current() == good
    assert len(changes(database_url)) == 1


def test_a_version_nobody_published_is_refused(root: Path, database_url: str) -> None:
    for command in ("activate", "show"):
        refusal = kairos("models", command, "missing", "--store", root, exit_code=1).output
        assert "'missing'" in refusal
        assert "kairos models list" in refusal
    assert changes(database_url) == []


@pytest.mark.parametrize("reason", ["two\nlines", "x" * 501])
def test_a_reason_is_one_line(root: Path, database_url: str, reason: str) -> None:
    version = BundleStore(root).versions()[0]
    place = ("--store", root, "--database", database_url)
    refusal = kairos("models", "activate", version, *place, "--reason", reason, exit_code=1)
    assert "one line" in refusal.output
    assert BundleStore(root).current() is None


def test_the_list_says_what_each_version_answers(root: Path) -> None:
    store = BundleStore(root)
    current, challenger, broken = store.versions()
    store.activate(current)
    store.route(Traffic(challenger=challenger, share=0.25))
    (root / broken / "manifest.json").write_text("{}")
    told = kairos("models", "list", "--store", root).output
    assert all(part in told for part in (current, challenger, broken, "current", "25%", "refused"))
    listed = json.loads(kairos("models", "list", "--store", root, "--json").output)
    assert [(row["version"], row["answers"]) for row in listed] == [
        (current, ["current"]),
        (challenger, ["challenger (25%)"]),
        (broken, []),
    ]
    assert listed[0]["ndcg@10"] == 0.25
    assert "altered" in listed[2]["refused"]


def test_an_empty_store_says_what_fills_it(tmp_path: Path) -> None:
    assert "kairos publish" in kairos("models", "list", "--store", tmp_path).output


def test_a_version_is_shown_with_its_figures_and_periods(root: Path) -> None:
    store = BundleStore(root)
    version = store.versions()[0]
    (root / CURRENT).write_text(version)
    told = kairos("models", "show", version, "--store", root).output
    for part in (version, "current", "self_attention", "ndcg@10", "0.2500", "mercer", "1000"):
        assert part in told


def test_what_fills_pages_of_a_provenance_is_not_shown(root: Path) -> None:
    epochs: list[JsonValue] = [{"epoch": 1, "loss": 2.5}]
    version = tiny_bundle.publish(
        root, seed=4, activate=False, provenance={"epochs": epochs, "p95_seconds": 0.125}
    )
    told = kairos("models", "show", version, "--store", root).output
    assert "0.125" in told
    assert "epochs" not in told


def test_a_broken_version_is_not_shown_as_if_it_were_sound(root: Path) -> None:
    version = BundleStore(root).versions()[0]
    tiny_bundle.damage(root, version)
    assert "altered" in kairos("models", "show", version, "--store", root, exit_code=1).output


def test_usage_errors_end_with_their_own_code() -> None:
    kairos("models", "activate", exit_code=2)
    kairos("models", "promote", exit_code=2)
