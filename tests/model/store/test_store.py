import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from model.bundle.manifest import WEIGHTS
from model.bundle.signature import BundleKeys
from model.errors import BundleError, NoCurrentBundleError, StoreBusyError
from model.store.store import CURRENT, BundleStore
from model.store.traffic import Traffic
from tests import tiny
from tests.model.store.killed_publisher import STAGES


def publish(store: BundleStore, seed: int = 0, *, activate: bool = True) -> str:
    config = tiny.recommender_config()
    return store.publish(tiny.writer(config, tiny.recommender(config, seed)), activate=activate)


@pytest.fixture
def store(tmp_path: Path) -> BundleStore:
    return BundleStore(tmp_path / "store")


def test_a_missing_store_is_empty(store: BundleStore) -> None:
    assert store.read_current() is None
    assert store.list_versions() == []


def test_without_a_current_version_the_error_has_a_remedy(store: BundleStore) -> None:
    with pytest.raises(NoCurrentBundleError, match="kairos train and kairos publish"):
        store.open()


def test_a_published_version_becomes_current(store: BundleStore) -> None:
    version = publish(store)
    assert store.read_current() == version
    assert store.list_versions() == [version]
    assert store.open().version == version
    assert store.read_manifest(version).metrics == {"ndcg@10": 0.25}


def test_publishing_without_activation_keeps_the_current(store: BundleStore) -> None:
    first = publish(store)
    second = publish(store, seed=1, activate=False)
    assert store.read_current() == first
    assert {*store.list_versions()} == {first, second}
    store.activate(second)
    assert store.open().version == second


def test_versions_are_listed_newest_first(store: BundleStore) -> None:
    now = publish(store)
    older, newer = "20200101T000000Z-aaaaaaaaaaaa", "99990101T000000Z-aaaaaaaaaaaa"
    for stamp in (older, newer):
        (store.root / stamp).mkdir()
        (store.root / stamp / "manifest.json").write_text("{}")
    assert store.list_versions() == [newer, now, older]


def test_versions_of_one_second_are_listed_by_arrival(store: BundleStore) -> None:
    versions = [f"20200101T000000Z-{digest * 12}" for digest in "bca"]
    for nanoseconds, version in enumerate(versions):
        (store.root / version).mkdir(parents=True)
        (store.root / version / "manifest.json").write_text("{}")
        os.utime(store.root / version, ns=(nanoseconds, nanoseconds))
    assert store.list_versions() == versions[::-1]


def test_an_older_version_can_be_activated(store: BundleStore) -> None:
    first, second = publish(store), publish(store, seed=1)
    assert store.read_current() == second
    store.activate(first)
    assert store.read_current() == first


@pytest.mark.timeout(30)
def test_an_activation_replaces_a_pipe_in_place_of_the_pointer(store: BundleStore) -> None:
    version = publish(store)
    (store.root / CURRENT).unlink()
    os.mkfifo(store.root / CURRENT)
    store.activate(version)
    assert store.read_current() == version


@pytest.mark.parametrize(
    "version", ["nothing", "..", "../elsewhere", ".", "", "/etc", ".incoming-1"]
)
def test_an_unpublished_version_is_refused(store: BundleStore, version: str) -> None:
    publish(store)
    with pytest.raises(BundleError, match="must be one of those published"):
        store.activate(version)
    with pytest.raises(BundleError):
        store.read_manifest(version)


def test_an_altered_manifest_prevents_activation(store: BundleStore) -> None:
    first, second = publish(store), publish(store, seed=1, activate=False)
    with (store.root / second / "manifest.json").open("a") as manifest:
        manifest.write(" ")
    with pytest.raises(BundleError, match="altered or renamed"):
        store.activate(second)
    assert store.read_current() == first


def test_a_bundle_that_does_not_open_is_not_published(store: BundleStore) -> None:
    first = publish(store)
    config = tiny.recommender_config()
    write = tiny.writer(config, tiny.recommender(config))

    def write_badly(directory: Path) -> str:
        version = write(directory)
        (directory / WEIGHTS).write_bytes(b"gibberish")
        return version

    with pytest.raises(BundleError, match="is altered"):
        store.publish(write_badly)
    assert store.list_versions() == [first]
    assert store.read_current() == first
    assert leftovers(store) == []


def test_a_failing_writer_leaves_no_files(store: BundleStore) -> None:
    def fail(directory: Path) -> str:
        (directory / WEIGHTS).write_bytes(b"half")
        raise RuntimeError("out of paper")

    with pytest.raises(RuntimeError, match="out of paper"):
        store.publish(fail)
    assert list(store.root.iterdir()) == []


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt, OSError])
def test_an_unverified_version_is_not_published(
    store: BundleStore, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    first = publish(store)

    def fail(_: Path, __: BundleKeys) -> None:
        raise error

    monkeypatch.setattr("model.store.store.open_predictor", fail)
    with pytest.raises(error):
        publish(store, seed=1)
    assert store.list_versions() == [first]
    assert store.read_current() == first
    assert leftovers(store) == []


def test_a_bundle_outside_the_store_is_copied(store: BundleStore, tmp_path: Path) -> None:
    bundle = tiny.write_bundle(tmp_path / "elsewhere")
    assert store.add_copy(bundle) == bundle.name
    assert store.read_current() == bundle.name
    assert bundle.is_dir()
    assert store.open().version == bundle.name


def test_copying_the_same_bundle_twice_changes_nothing(store: BundleStore, tmp_path: Path) -> None:
    bundle = tiny.write_bundle(tmp_path / "elsewhere")
    store.add_copy(bundle, activate=False)
    assert store.read_current() is None
    assert store.add_copy(bundle) == bundle.name
    assert store.list_versions() == [bundle.name]


def test_a_damaged_bundle_is_not_copied(store: BundleStore, tmp_path: Path) -> None:
    bundle = tiny.write_bundle(tmp_path / "elsewhere")
    (bundle / WEIGHTS).unlink()
    with pytest.raises(BundleError, match="is missing"):
        store.add_copy(bundle)
    assert store.list_versions() == []


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One store per stage: with a version, and a second publisher that was killed at the stage."""
    root = tmp_path_factory.mktemp("killed")
    for stage in STAGES:
        publish(BundleStore(root / stage))
    subprocess.run(
        [sys.executable, "-m", "tests.model.store.killed_publisher", str(root)], check=True
    )
    return root


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.slow
def test_a_killed_publisher_leaves_an_intact_current(killed: Path, stage: str) -> None:
    store = BundleStore(killed / stage)
    published = 2 if stage in {"after_rename", "before_pointer", "after_pointer"} else 1
    assert len(store.list_versions()) == published
    assert all(store.open(version).version == version for version in store.list_versions())
    old = min(store.list_versions(), key=lambda version: (store.root / version).stat().st_mtime_ns)
    assert (store.read_current() == old) == (stage != "after_pointer")
    assert store.open().version == store.read_current()


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.slow
def test_a_killed_publisher_does_not_block_the_next(
    killed: Path, tmp_path: Path, stage: str
) -> None:
    store = BundleStore(Path(shutil.copytree(killed / stage, tmp_path / stage)))
    before = store.list_versions()
    version = publish(store, seed=3)
    assert store.read_current() == version
    assert {*store.list_versions()} == {*before, version}


@pytest.mark.slow
def test_half_a_bundle_is_no_version(killed: Path) -> None:
    assert leftovers(BundleStore(killed / "half_written"))
    assert not leftovers(BundleStore(killed / "after_pointer"))
    assert CURRENT not in BundleStore(killed / "half_written").list_versions()


def leftovers(store: BundleStore) -> list[str]:
    return [path.name for path in store.root.iterdir() if path.name.startswith(".")]


def test_a_failing_change_restores_the_pointers(store: BundleStore) -> None:
    first = publish(store)
    second = publish(store, seed=1, activate=False)

    def change_and_fail() -> None:
        with store.lock_pointers():
            store.activate(second)
            store.route(Traffic(shadow=second))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        change_and_fail()
    assert store.read_current() == first
    assert store.read_traffic() == Traffic()
    assert [path.name for path in store.root.iterdir() if "incoming" in path.name] == []


def test_a_failing_first_change_leaves_no_pointer(store: BundleStore) -> None:
    version = publish(store, activate=False)

    def change_and_fail() -> None:
        with store.lock_pointers():
            store.activate(version)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        change_and_fail()
    assert store.read_current() is None


def test_a_change_waits_for_another_up_to_a_limit(
    store: BundleStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(store)
    with store.lock_pointers():
        monkeypatch.setattr("model.store.store._PATIENCE_SECONDS", 0.1)
        with pytest.raises(StoreBusyError, match=r"\.lock"), store.lock_pointers():
            pass
    with store.lock_pointers():
        pass


@pytest.mark.slow
def test_a_killed_process_releases_the_lock(store: BundleStore) -> None:
    publish(store)
    hold = (
        "import sys, time; from pathlib import Path; from model.store.store import BundleStore\n"
        "with BundleStore(Path(sys.argv[1])).lock_pointers():\n"
        "    print('held', flush=True); time.sleep(60)"
    )
    process = subprocess.Popen([sys.executable, "-c", hold, store.root], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    process.kill()
    process.wait(10)
    process.stdout.close()
    with store.lock_pointers():
        pass


def test_a_version_that_does_not_serve_can_be_removed(store: BundleStore) -> None:
    old, current = publish(store), publish(store, seed=1)
    store.remove(old)
    assert store.list_versions() == [current]
    assert not [path for path in store.root.iterdir() if old in path.name]
    with pytest.raises(BundleError, match="must be one of those published"):
        store.remove(old)


@pytest.mark.parametrize("role", ["current", "challenger", "shadow"])
def test_a_serving_version_cannot_be_removed(store: BundleStore, role: str) -> None:
    serving = publish(store)
    if role != "current":
        publish(store, seed=1)
        store.route(Traffic.model_validate({role: serving}))
    with pytest.raises(BundleError, match="must not serve when it is removed"):
        store.remove(serving)
    assert serving in store.list_versions()


def leave_behind(store: BundleStore, name: str, *, hours: float) -> Path:
    """Leave an unfinished bundle or pointer file of some age in a store."""
    store.root.mkdir(parents=True, exist_ok=True)
    leftover = store.root / f".incoming-{name}"
    if name.startswith("bundle"):
        leftover.mkdir()
        (leftover / WEIGHTS).write_bytes(b"half")
    else:
        leftover.write_bytes(b"half")
    at = time.time() - hours * 3600
    os.utime(leftover, (at, at))
    return leftover


@pytest.mark.parametrize("name", ["bundle", "pointer"])
def test_publishing_removes_leftovers_of_killed_publishers(store: BundleStore, name: str) -> None:
    leftover = leave_behind(store, name, hours=2)
    version = publish(store)
    assert not leftover.exists()
    assert store.list_versions() == [version]


@pytest.mark.parametrize("target", ["missing", "directory"])
def test_publishing_removes_old_links_but_not_targets(store: BundleStore, target: str) -> None:
    elsewhere = store.root.parent / "elsewhere"
    if target == "directory":
        elsewhere.mkdir()
        (elsewhere / WEIGHTS).write_bytes(b"kept")
    store.root.mkdir()
    link = store.root / ".incoming-link"
    link.symlink_to(elsewhere)
    at = time.time() - 7200
    os.utime(link, (at, at), follow_symlinks=False)
    publish(store)
    assert not link.is_symlink()
    assert elsewhere.exists() == (target == "directory")
    assert [file.name for file in elsewhere.glob("*")] == [WEIGHTS] * (target == "directory")


def test_publishing_removes_a_recent_unfinished_bundle(store: BundleStore) -> None:
    leftover = leave_behind(store, "bundle", hours=0)
    publish(store)
    assert not leftover.exists()


def test_publishing_keeps_recent_pointers_of_old_releases(store: BundleStore) -> None:
    leftover = leave_behind(store, "pointer", hours=0.5)
    publish(store)
    assert leftover.exists()


@pytest.mark.slow
def test_what_a_killed_publisher_left_is_removed_at_once(killed: Path, tmp_path: Path) -> None:
    for stage in STAGES:
        store = BundleStore(Path(shutil.copytree(killed / stage, tmp_path / stage)))
        store.remove_leftovers()
        assert leftovers(store) == [], stage


def test_publishing_keeps_files_of_a_running_publisher(store: BundleStore) -> None:
    config = tiny.recommender_config()
    write = tiny.writer(config, tiny.recommender(config))
    slow: list[str] = []

    def write_slowly(directory: Path) -> str:
        at = time.time() - 7200
        os.utime(directory, (at, at))
        slow.append(publish(store, seed=1))
        BundleStore(store.root).remove_leftovers()
        assert directory.is_dir()
        return write(directory)

    version = store.publish(write_slowly)
    assert {*store.list_versions()} == {version, *slow}
