"""Commands on a store in an object store, as a trainer and an operator use them."""

import json
from pathlib import Path
from uuid import uuid4

import pytest

from migrations.run import upgrade
from model.store.mirrored import MirroredStore
from model.store.objects import ObjectStorage
from tests.app import tiny_bundle
from tests.cli.world import kairos
from tests.scale.serving.object_store import ObjectStore


@pytest.fixture
def url(object_store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The store in the environment of the commands."""
    url = f"{object_store.url}/{uuid4().hex}"
    database_url = f"sqlite:///{tmp_path / 'kairos.db'}"
    upgrade(database_url)
    for name, value in {
        "KAIROS_BUNDLE_STORE": url,
        "KAIROS_BUNDLE_CACHE": str(tmp_path / "cache"),
        "KAIROS_DATABASE_URL": database_url,
        "KAIROS_ERASURE_LOG": str(tmp_path / "erasures"),
    }.items():
        monkeypatch.setenv(name, value)
    return url


def test_versions_are_published_and_activated(url: str, tmp_path: Path) -> None:
    first, second = (tiny_bundle.publish(tmp_path / "runs", seed=seed) for seed in (1, 2))
    for version in (first, second):
        assert kairos("publish", tmp_path / "runs" / version).output.strip() == version
    kairos("models", "activate", first, "--reason", "a second look")
    kairos("models", "rollback")
    replica = MirroredStore(ObjectStorage(url), tmp_path / "replica")
    replica.synchronize(lists=True)
    assert replica.open().version == second
    assert {*replica.list_versions()} == {first, second}
    shown = json.loads(kairos("models", "list", "--json").stdout)
    assert {row["version"]: row["answers"] for row in shown} == {second: ["current"], first: []}
    checks = {
        it["name"]: it["verdict"] for it in json.loads(kairos("doctor", "--json").stdout)["checks"]
    }
    assert checks["bundles.mirror"] == "ok"


def test_what_needs_a_directory_says_so(url: str, tmp_path: Path) -> None:
    for command in ("backup", "restore"):
        refused = kairos(command, tmp_path / "backup", exit_code=1)
        assert "works on a directory of bundles" in refused.output


def test_a_lost_object_store_is_named(url: str, object_store: ObjectStore, tmp_path: Path) -> None:
    object_store.stop()
    try:
        assert f"the bundles of {url} must be reachable" in " ".join(
            kairos("models", "list", exit_code=1).output.split()
        )
        report = json.loads(kairos("doctor", "--json", exit_code=1).stdout)["checks"]
        assert {it["name"]: it["verdict"] for it in report}["bundles.mirror"] == "failure"
    finally:
        object_store.start()
