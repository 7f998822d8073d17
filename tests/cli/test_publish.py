"""The `kairos publish` command."""

from pathlib import Path

from model.bundle.manifest import MANIFEST
from model.bundle.reading import find_bundle
from model.store.store import BundleStore
from tests.cli.world import kairos


def test_publishing_activates_the_bundle_of_a_run(run: Path, store: Path) -> None:
    assert BundleStore(store).read_current() == find_bundle(run).name


def test_publishing_again_changes_nothing(run: Path, store: Path) -> None:
    assert kairos("publish", run, "--store", store).output.strip() == find_bundle(run).name
    assert BundleStore(store).list_versions() == [find_bundle(run).name]


def test_a_version_can_be_published_without_activation(run: Path, tmp_path: Path) -> None:
    version = kairos("publish", run, "--store", tmp_path, "--no-activate").output.strip()
    assert BundleStore(tmp_path).read_current() is None
    kairos("models", "activate", version, "--store", tmp_path)
    assert BundleStore(tmp_path).read_current() == version


def test_an_unfinished_bundle_is_not_published(tmp_path: Path) -> None:
    unfinished = tmp_path / ".bundle"
    unfinished.mkdir()
    (unfinished / MANIFEST).touch()
    output = kairos("publish", tmp_path, "--store", tmp_path / "store", exit_code=1).output
    assert "run kairos train first" in output
