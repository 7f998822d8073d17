import subprocess
import sys
from pathlib import Path

import pytest

from model.bundle.manifest import WEIGHTS
from model.bundle.store import CURRENT, BundleStore
from model.errors import BundleError, NoCurrentBundleError
from tests import tiny
from tests.model.bundle.killed_publisher import STAGES


def publish(store: BundleStore, seed: int = 0, *, activate: bool = True) -> str:
    config = tiny.described()
    return store.publish(tiny.writer(config, tiny.recommender(config, seed)), activate=activate)


@pytest.fixture
def store(tmp_path: Path) -> BundleStore:
    return BundleStore(tmp_path / "store")


def test_a_store_that_is_not_there_yet_is_empty(store: BundleStore) -> None:
    assert store.current() is None
    assert store.versions() == []


def test_without_a_current_version_opening_says_how_to_get_one(store: BundleStore) -> None:
    with pytest.raises(NoCurrentBundleError, match="kairos train and kairos publish"):
        store.open()


def test_what_is_published_becomes_current(store: BundleStore) -> None:
    version = publish(store)
    assert store.current() == version
    assert store.versions() == [version]
    assert store.open().version == version
    assert store.manifest(version).metrics == {"ndcg@10": 0.25}


def test_publishing_may_leave_the_pointer_alone(store: BundleStore) -> None:
    first = publish(store)
    second = publish(store, seed=1, activate=False)
    assert store.current() == first
    assert {*store.versions()} == {first, second}
    store.activate(second)
    assert store.open().version == second


def test_versions_are_listed_newest_first(store: BundleStore) -> None:
    now = publish(store)
    older, newer = "20200101T000000Z-aaaaaaaaaaaa", "99990101T000000Z-aaaaaaaaaaaa"
    for stamp in (older, newer):
        (store.root / stamp).mkdir()
        (store.root / stamp / "manifest.json").write_text("{}")
    assert store.versions() == [newer, now, older]


def test_going_back_to_an_older_version_is_one_activation(store: BundleStore) -> None:
    first, second = publish(store), publish(store, seed=1)
    assert store.current() == second
    store.activate(first)
    assert store.current() == first


@pytest.mark.parametrize(
    "version", ["nothing", "..", "../elsewhere", ".", "", "/etc", ".incoming-1"]
)
def test_a_version_that_was_not_published_is_refused(store: BundleStore, version: str) -> None:
    publish(store)
    with pytest.raises(BundleError, match="must be one of those published"):
        store.activate(version)
    with pytest.raises(BundleError):
        store.manifest(version)


def test_a_version_with_an_altered_manifest_cannot_be_activated(store: BundleStore) -> None:
    first, second = publish(store), publish(store, seed=1, activate=False)
    with (store.root / second / "manifest.json").open("a") as manifest:
        manifest.write(" ")
    with pytest.raises(BundleError, match="altered or renamed"):
        store.activate(second)
    assert store.current() == first


def test_what_cannot_be_opened_is_not_taken_in(store: BundleStore) -> None:
    first = publish(store)
    config = tiny.described()
    write = tiny.writer(config, tiny.recommender(config))

    def write_badly(directory: Path) -> str:
        version = write(directory)
        (directory / WEIGHTS).write_bytes(b"gibberish")
        return version

    with pytest.raises(BundleError, match="is altered"):
        store.publish(write_badly)
    assert store.versions() == [first]
    assert store.current() == first
    assert leftovers(store) == []


def test_a_writer_that_fails_leaves_nothing_behind(store: BundleStore) -> None:
    def fail(directory: Path) -> str:
        (directory / WEIGHTS).write_bytes(b"half")
        raise RuntimeError("out of paper")

    with pytest.raises(RuntimeError, match="out of paper"):
        store.publish(fail)
    assert list(store.root.iterdir()) == []


def test_a_bundle_from_elsewhere_is_taken_in_as_a_copy(store: BundleStore, tmp_path: Path) -> None:
    bundle = tiny.write_bundle(tmp_path / "elsewhere")
    assert store.take_in(bundle) == bundle.name
    assert store.current() == bundle.name
    assert bundle.is_dir()
    assert store.open().version == bundle.name


def test_taking_in_the_same_bundle_twice_changes_nothing(
    store: BundleStore, tmp_path: Path
) -> None:
    bundle = tiny.write_bundle(tmp_path / "elsewhere")
    store.take_in(bundle, activate=False)
    assert store.current() is None
    assert store.take_in(bundle) == bundle.name
    assert store.versions() == [bundle.name]


def test_a_damaged_bundle_from_elsewhere_is_refused(store: BundleStore, tmp_path: Path) -> None:
    bundle = tiny.write_bundle(tmp_path / "elsewhere")
    (bundle / WEIGHTS).unlink()
    with pytest.raises(BundleError, match="is missing"):
        store.take_in(bundle)
    assert store.versions() == []


# A publisher that is killed


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store per stage, each with a version, after a second publisher was killed at the stage."""
    root = tmp_path_factory.mktemp("killed")
    for stage in STAGES:
        publish(BundleStore(root / stage))
    subprocess.run(
        [sys.executable, "-m", "tests.model.bundle.killed_publisher", str(root)], check=True
    )
    return root


@pytest.mark.parametrize("stage", STAGES)
def test_a_killed_publisher_leaves_a_sound_current_version(killed: Path, stage: str) -> None:
    store = BundleStore(killed / stage)
    published = 2 if stage in {"after_rename", "before_pointer", "after_pointer"} else 1
    assert len(store.versions()) == published
    assert all(store.open(version).version == version for version in store.versions())
    old = min(store.versions(), key=lambda version: (store.root / version).stat().st_mtime_ns)
    assert (store.current() == old) == (stage != "after_pointer")
    assert store.open().version == store.current()


@pytest.mark.parametrize("stage", STAGES)
def test_what_a_killed_publisher_leaves_does_not_stop_the_next(killed: Path, stage: str) -> None:
    store = BundleStore(killed / stage)
    before = store.versions()
    version = publish(store, seed=3)
    assert store.current() == version
    assert {*store.versions()} == {*before, version}


def test_half_a_bundle_is_left_where_nobody_looks(killed: Path) -> None:
    assert leftovers(BundleStore(killed / "half_written"))
    assert not leftovers(BundleStore(killed / "after_pointer"))
    assert CURRENT not in BundleStore(killed / "half_written").versions()


def leftovers(store: BundleStore) -> list[str]:
    return [path.name for path in store.root.iterdir() if path.name.startswith(".")]
