"""The `kairos models` commands, and the changes they record in the database."""

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
from tests.cli.world import kairos


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
    newest = database.read_blocking(lambda session: ModelChangeRepository(session).list_newest(100))
    database.close()
    return newest[::-1]


def test_an_activation_is_recorded_with_actor_and_reason(root: Path, database_url: str) -> None:
    store = BundleStore(root)
    version = store.list_versions()[0]
    output = kairos(
        *("models", "activate", version, "--store", root, "--database", database_url),
        *("--reason", "a first one"),
    ).output
    assert output.strip() == version
    assert store.read_current() == version
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
    options = ("--store", root, "--database", database_url)
    first, second, third = store.list_versions()
    for version in (first, second, third):
        kairos("models", "activate", version, *options)
    assert kairos("models", "rollback", *options).output.strip() == second
    assert store.read_current() == second
    assert kairos("models", "rollback", *options).output.strip() == first
    output = kairos("models", "rollback", *options, exit_code=1).output
    assert "activate a version by its name" in output
    assert store.read_current() == first
    assert [change.change for change in changes(database_url)] == ["activate"] * 3 + [
        "rollback"
    ] * 2


def test_publishing_is_recorded_as_publish(root: Path, database_url: str, tmp_path: Path) -> None:
    version = BundleStore(root).list_versions()[0]
    options = ("--store", tmp_path / "other", "--database", database_url)
    kairos("publish", root / version, *options)
    assert [(change.change, change.version) for change in changes(database_url)] == [
        ("publish", version)
    ]


@pytest.mark.parametrize("command", ["activate", "publish"])
@pytest.mark.parametrize("database", ["missing.db", "empty.db"])
def test_activation_without_a_database_prints_a_warning(
    root: Path, tmp_path: Path, command: str, database: str
) -> None:
    (tmp_path / "empty.db").touch()
    version = BundleStore(root).list_versions()[0]
    arguments = (
        ("models", "activate", version, "--store", root)
        if command == "activate"
        else ("publish", root / version, "--store", tmp_path / "other")
    )
    result = kairos(*arguments, "--database", f"sqlite:///{tmp_path / database}")
    assert result.stdout.strip() == version
    assert "warning" in result.stderr
    assert "not recorded" in result.stderr
    assert BundleStore(Path(arguments[-1])).read_current() == version
    assert not (tmp_path / "missing.db").exists()


def test_rollback_without_a_database_fails(root: Path, tmp_path: Path) -> None:
    store = BundleStore(root)
    store.activate(store.list_versions()[0])
    output = kairos(
        *("models", "rollback", "--store", root),
        *("--database", f"sqlite:///{tmp_path / 'missing.db'}"),
        exit_code=1,
    ).output
    assert "does not exist" in output
    assert store.read_current() == store.list_versions()[0]


def test_a_damaged_version_does_not_become_current(root: Path, database_url: str) -> None:
    store = BundleStore(root)
    good, damaged, _ = store.list_versions()
    tiny_bundle.damage(root, damaged)
    options = ("--store", root, "--database", database_url)
    kairos("models", "activate", good, *options)
    for arguments in (("models", "activate", damaged), ("publish", root / damaged)):
        assert "altered" in kairos(*arguments, *options, exit_code=1).output
    assert store.read_current() == good
    assert len(changes(database_url)) == 1


def test_an_unpublished_version_is_rejected(root: Path, database_url: str) -> None:
    for command in ("activate", "show"):
        output = kairos("models", command, "missing", "--store", root, exit_code=1).output
        assert "'missing'" in output
        assert "kairos models list" in output
    assert changes(database_url) == []


@pytest.mark.parametrize("reason", ["two\nlines", "x" * 501])
def test_a_reason_is_one_line(root: Path, database_url: str, reason: str) -> None:
    version = BundleStore(root).list_versions()[0]
    options = ("--store", root, "--database", database_url)
    output = kairos("models", "activate", version, *options, "--reason", reason, exit_code=1)
    assert "one line" in output.output
    assert BundleStore(root).read_current() is None


def test_list_shows_the_role_of_each_version(root: Path) -> None:
    store = BundleStore(root)
    current, challenger, damaged = store.list_versions()
    store.activate(current)
    store.route(Traffic(challenger=challenger, share=0.25))
    (root / damaged / "manifest.json").write_text("{}")
    output = kairos("models", "list", "--store", root).output
    assert all(
        part in output for part in (current, challenger, damaged, "current", "25%", "refused")
    )
    listed = json.loads(kairos("models", "list", "--store", root, "--json").output)
    assert [(row["version"], row["answers"]) for row in listed] == [
        (current, ["current"]),
        (challenger, ["challenger (25%)"]),
        (damaged, []),
    ]
    assert listed[0]["ndcg@10"] == 0.25
    assert "altered" in listed[2]["refused"]


def test_listing_an_empty_store_names_the_publish_command(tmp_path: Path) -> None:
    assert "kairos publish" in kairos("models", "list", "--store", tmp_path).output


def test_show_prints_metrics_and_periods(root: Path) -> None:
    store = BundleStore(root)
    version = store.list_versions()[0]
    (root / CURRENT).write_text(version)
    output = kairos("models", "show", version, "--store", root).output
    for part in (version, "current", "self_attention", "ndcg@10", "0.2500", "mercer", "1000"):
        assert part in output


def test_show_leaves_out_lists_of_the_provenance(root: Path) -> None:
    epochs: list[JsonValue] = [{"epoch": 1, "loss": 2.5}]
    version = tiny_bundle.publish(
        root, seed=4, activate=False, provenance={"epochs": epochs, "p95_seconds": 0.125}
    )
    output = kairos("models", "show", version, "--store", root).output
    assert "0.125" in output
    assert "epochs" not in output


def test_show_rejects_a_damaged_version(root: Path) -> None:
    version = BundleStore(root).list_versions()[0]
    tiny_bundle.damage(root, version)
    assert "altered" in kairos("models", "show", version, "--store", root, exit_code=1).output


def test_usage_errors_exit_with_2() -> None:
    kairos("models", "activate", exit_code=2)
    kairos("models", "promote", exit_code=2)


def test_signing_lets_old_versions_serve_again(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    version, *others = BundleStore(root).list_versions()
    outside = tiny_bundle.publish(tmp_path / "outside", seed=4)
    assert "needs a key" in kairos("models", "sign", "--all", "--store", root, exit_code=1).output
    monkeypatch.setenv("KAIROS_BUNDLE_KEY", "0123456789abcdef" * 4)
    show = ("models", "show", version, "--store", root)
    assert "must be signed" in kairos(*show, exit_code=1).output
    publish = ("publish", tmp_path / "outside" / outside, "--no-activate", "--store", root)
    assert "must be signed" in kairos(*publish, exit_code=1).output
    kairos("models", "sign", version, tmp_path / "outside" / outside, "--store", root)
    kairos(*show)
    kairos(*publish)
    assert (
        "must be signed" in kairos("models", "show", others[0], "--store", root, exit_code=1).output
    )
    kairos("models", "sign", "--all", "--store", root)
    kairos("models", "show", others[0], "--store", root)
