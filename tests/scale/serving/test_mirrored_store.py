import shutil
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from errno import EIO, ENOSPC
from pathlib import Path
from time import sleep
from uuid import uuid4

import pytest

from model.bundle.manifest import MANIFEST, WEIGHTS
from model.bundle.signature import NO_KEYS, BundleKeys
from model.errors import BundleError, StoreBusyError
from model.store.location import open_bundle_store
from model.store.mirrored import BUNDLES, MirroredStore
from model.store.objects import ObjectStorage, StoredObject
from model.store.store import BundleStore
from model.store.traffic import Traffic
from tests.contracts.bundle_store import KEYS, BundleStoreContract, publish
from tests.scale.serving.object_store import ObjectStore


class TestMirroredStore(BundleStoreContract):
    @pytest.fixture(autouse=True)
    def _place(self, object_store: ObjectStore, tmp_path: Path) -> None:
        self.url, self.directory = f"{object_store.url}/{uuid4().hex}", tmp_path

    def open_store(self, machine: str, keys: BundleKeys | None = None) -> BundleStore:
        return MirroredStore(ObjectStorage(self.url), self.directory / machine, keys or NO_KEYS)

    def look(self, store: BundleStore) -> BundleStore:
        assert isinstance(store, MirroredStore)
        store.synchronize(lists=True)
        return store


@pytest.fixture
def url(object_store: ObjectStore) -> str:
    """A prefix of the bucket that no other test uses."""
    return f"{object_store.url}/{uuid4().hex}"


@pytest.fixture
def trainer(url: str, tmp_path: Path) -> MirroredStore:
    """A machine that publishes."""
    return MirroredStore(ObjectStorage(url), tmp_path / "trainer")


@pytest.fixture
def replica(url: str, tmp_path: Path) -> MirroredStore:
    """A machine that serves."""
    return MirroredStore(ObjectStorage(url), tmp_path / "replica")


def damage(object_store: ObjectStore, url: str, version: str, name: str = WEIGHTS) -> None:
    object_store.open().pipe_file(f"{url.removeprefix('s3://')}/bundles/{version}/{name}", b"bad")


def test_a_lost_object_store_leaves_the_copy(
    object_store: ObjectStore, trainer: MirroredStore, replica: MirroredStore
) -> None:
    first = publish(trainer)
    replica.synchronize()
    object_store.stop()
    try:
        with pytest.raises(ConnectionError, match="does not answer"):
            replica.synchronize()
        assert replica.open().version == first
        for change in (
            lambda: replica.activate(first),
            lambda: replica.route(Traffic(shadow=first)),
            lambda: publish(replica, 1),
        ):
            with pytest.raises(ConnectionError, match="does not answer"):
                change()
        assert replica.list_versions() == [first]
        assert (replica.read_current(), replica.read_traffic()) == (first, Traffic())
        assert replica.list_leftovers() == []
    finally:
        object_store.start()
    second = publish(trainer, 1)
    replica.synchronize()
    assert replica.open().version == second


def test_a_killed_upload_is_no_version(
    trainer: MirroredStore, replica: MirroredStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = publish(trainer)
    upload = ObjectStorage.upload

    def fail_at_the_manifest(storage: ObjectStorage, file: Path, name: str) -> None:
        if name.endswith(MANIFEST):
            raise ConnectionError("the machine was switched off")
        upload(storage, file, name)

    monkeypatch.setattr(ObjectStorage, "upload", fail_at_the_manifest)
    with pytest.raises(ConnectionError, match="switched off"):
        publish(trainer, 1)
    monkeypatch.setattr(ObjectStorage, "upload", upload)
    left = [name for name in trainer.storage.list_below(BUNDLES) if not name.startswith(first)]
    assert left
    for store in (trainer, replica):
        store.synchronize(lists=True)
        assert store.list_versions() == [first]
    monkeypatch.setattr("model.store.mirrored._LEFTOVER_SECONDS", -1.0)
    second = publish(trainer, 2)
    remaining = {name.partition("/")[0] for name in trainer.storage.list_below(BUNDLES)}
    assert remaining == {first, second}


def test_a_damaged_version_is_not_followed(
    object_store: ObjectStore, url: str, trainer: MirroredStore, replica: MirroredStore
) -> None:
    first = publish(trainer)
    replica.synchronize()
    second = publish(trainer, 1)
    damage(object_store, url, second)
    for _ in range(2):
        with pytest.raises(BundleError, match="is altered"):
            replica.synchronize()
    assert replica.list_versions() == [first]
    assert replica.open().version == first
    trainer.storage.upload(trainer.root / second / WEIGHTS, f"{BUNDLES}/{second}/{WEIGHTS}")
    replica.synchronize()
    assert replica.open().version == second


def test_damage_is_downloaded_once(
    object_store: ObjectStore,
    url: str,
    trainer: MirroredStore,
    replica: MirroredStore,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    damage(object_store, url, publish(trainer))
    with pytest.raises(BundleError, match="is altered"):
        replica.synchronize()
    monkeypatch.setattr(ObjectStorage, "download", lambda *_: pytest.fail("downloaded again"))
    with pytest.raises(BundleError, match="is altered"):
        replica.synchronize()


@pytest.mark.parametrize("name", ["nested/file", ".hidden", "foreign"])
def test_an_additional_object_is_refused(
    object_store: ObjectStore, url: str, trainer: MirroredStore, replica: MirroredStore, name: str
) -> None:
    damage(object_store, url, publish(trainer), name)
    with pytest.raises(BundleError, match=r"directory of files|is foreign"):
        replica.synchronize()
    assert replica.list_versions() == []


@pytest.mark.parametrize(
    "content",
    [b"../../elsewhere\n", b".hidden\n", b"\xff\xfe", b"nothing\n", b"", b"\n", b"a\0b", b"a\nb"],
)
def test_a_foreign_pointer_is_not_followed(
    object_store: ObjectStore,
    url: str,
    trainer: MirroredStore,
    replica: MirroredStore,
    content: bytes,
) -> None:
    first = publish(trainer)
    replica.synchronize()
    object_store.open().pipe_file(f"{url.removeprefix('s3://')}/CURRENT", content)
    with pytest.raises(BundleError):
        replica.synchronize()
    assert replica.open().version == first
    assert {path.parent for path in replica.root.parent.glob("*/CURRENT")} <= {
        replica.root,
        trainer.root,
    }


def test_an_object_without_a_version_prevents_nothing(
    object_store: ObjectStore, url: str, trainer: MirroredStore, replica: MirroredStore
) -> None:
    first, second = publish(trainer), publish(trainer, 1)
    replica.synchronize(lists=True)
    damage(object_store, url, "", MANIFEST)
    trainer.remove(first)
    for _ in range(2):
        with pytest.raises(BundleError, match="a version is the name of a bundle"):
            replica.synchronize(lists=True)
    assert replica.list_versions() == [second]


def test_a_copy_of_another_store_is_refused(
    url: str, trainer: MirroredStore, replica: MirroredStore
) -> None:
    publish(trainer)
    replica.synchronize()
    with pytest.raises(BundleError, match="name another with KAIROS_BUNDLE_CACHE"):
        MirroredStore(ObjectStorage(f"{url}-of-others"), replica.root)
    before = MirroredStore(ObjectStorage(f"{url}-of-others"), replica.root.with_name("new"))
    MirroredStore(ObjectStorage(url), before.root).synchronize()
    with pytest.raises(BundleError, match="is the copy of one object store"):
        before.synchronize()
    assert MirroredStore(ObjectStorage(url), replica.root).list_leftovers() == []


@pytest.mark.parametrize("prefix", ["größe", "best (1) ", "v=2,"])
def test_any_name_of_a_directory_reaches_other_machines(
    trainer: MirroredStore, replica: MirroredStore, tmp_path: Path, prefix: str
) -> None:
    version = publish(trainer)
    copy = tmp_path / f"{prefix}-{version.rpartition('-')[2]}"
    shutil.copytree(trainer.root / version, copy)
    assert trainer.add_copy(copy) == copy.name
    replica.synchronize()
    assert replica.open().version == replica.read_current() == copy.name


def test_a_name_that_no_machine_would_take_is_refused(
    trainer: MirroredStore, replica: MirroredStore, tmp_path: Path
) -> None:
    version = publish(trainer)
    copy = tmp_path / f"two\nlines-{version.rpartition('-')[2]}"
    shutil.copytree(trainer.root / version, copy)
    with pytest.raises(BundleError, match="rename the directory of the bundle"):
        trainer.add_copy(copy)
    replica.synchronize(lists=True)
    assert replica.list_versions() == [version]


def test_a_version_that_is_not_here_is_not_removed_elsewhere(
    trainer: MirroredStore, replica: MirroredStore
) -> None:
    first, second = publish(trainer), publish(trainer, 1)
    replica.synchronize()
    assert replica.list_versions() == [second]
    with pytest.raises(BundleError):
        replica.remove(first)
    replica.synchronize(lists=True)
    assert first in replica.list_versions()


def test_a_removal_that_fails_here_leaves_the_version_published(
    trainer: MirroredStore, replica: MirroredStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, _ = publish(trainer), publish(trainer, 1)

    def fail(_: BundleStore, __: str) -> Path:
        raise OSError(EIO, "a broken disk")

    with monkeypatch.context() as patched:
        patched.setattr(BundleStore, "_withdraw", fail)
        with pytest.raises(OSError, match="a broken disk"):
            trainer.remove(first)
    replica.synchronize(lists=True)
    assert first in replica.list_versions()
    trainer.remove(first)


def test_a_failed_change_does_not_undo_that_of_another_machine(
    trainer: MirroredStore, replica: MirroredStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    versions = [publish(trainer, seed) for seed in range(3)]
    replica.synchronize(lists=True)
    replace = BundleStore._replace

    def fail(store: BundleStore, name: str, content: bytes | None) -> None:
        if store is trainer and content == f"{versions[0]}\n".encode():
            replica.activate(versions[1])
            raise OSError(ENOSPC, "no space")
        replace(store, name, content)

    with monkeypatch.context() as patched:
        patched.setattr(BundleStore, "_replace", fail)
        with pytest.raises(StoreBusyError):
            trainer.activate(versions[0])
    trainer.synchronize()
    assert trainer.read_current() == replica.read_current() == versions[1]


def test_a_version_activated_elsewhere_is_not_removed(
    trainer: MirroredStore, replica: MirroredStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = publish(trainer), publish(trainer, 1)
    replica.synchronize(lists=True)
    delete = ObjectStorage.delete

    def activate_before(storage: ObjectStorage, name: str) -> None:
        monkeypatch.setattr(ObjectStorage, "delete", delete)
        replica.activate(first)
        storage.delete(name)

    monkeypatch.setattr(ObjectStorage, "delete", activate_before)
    with pytest.raises(StoreBusyError, match="another moved CURRENT"):
        trainer.remove(first)
    for store in (trainer, replica):
        store.synchronize(lists=True)
        assert store.open().version == first
        assert {*store.list_versions()} == {first, second}


@pytest.mark.parametrize("locks", [True, False], ids=["in a lock", "by itself"])
def test_a_version_removed_elsewhere_is_not_activated(
    trainer: MirroredStore, replica: MirroredStore, monkeypatch: pytest.MonkeyPatch, locks: bool
) -> None:
    first, second = publish(trainer), publish(trainer, 1)
    replica.synchronize(lists=True)
    write = ObjectStorage.write

    def remove_before(
        storage: ObjectStorage, name: str, content: bytes, *, replaces: StoredObject | None
    ) -> StoredObject:
        monkeypatch.setattr(ObjectStorage, "write", write)
        trainer.remove(first)
        return storage.write(name, content, replaces=replaces)

    def change(version: str) -> None:
        monkeypatch.setattr(ObjectStorage, "write", remove_before)
        with replica.lock_pointers() if locks else nullcontext():
            replica.activate(version)

    with pytest.raises(BundleError, match="any more"):
        change(first)
    assert replica.read_current() == second
    for store in (trainer, replica):
        store.synchronize(lists=True)
        assert store.open().version == second


def test_a_full_disk_leaves_the_pointers_everywhere(
    trainer: MirroredStore, replica: MirroredStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = publish(trainer), publish(trainer, 1, activate=False)

    def fail(*_: object) -> None:
        raise OSError(ENOSPC, "no space left on device")

    def change(*, locks: bool) -> None:
        with trainer.lock_pointers() if locks else nullcontext():
            trainer.activate(second)

    for locks in (True, False):
        with monkeypatch.context() as patch:
            patch.setattr("model.store.store.replace_file", fail)
            with pytest.raises(OSError, match="no space left"):
                change(locks=locks)
        replica.synchronize(lists=True)
        assert replica.read_current() == trainer.read_current() == first


def test_an_emptied_bucket_empties_no_copy(
    object_store: ObjectStore,
    url: str,
    trainer: MirroredStore,
    replica: MirroredStore,
    tmp_path: Path,
) -> None:
    first = publish(trainer)
    replica.synchronize(lists=True)
    object_store.open().rm(url.removeprefix("s3://"), recursive=True)
    for _ in range(3):
        with pytest.raises(BundleError, match="KAIROS_BUNDLE_STORE"):
            replica.synchronize(lists=True)
    assert replica.open().version == first
    with pytest.raises(BundleError, match="not in s3://"):
        replica.activate(first)
    assert replica.add_copy(replica.root / first) == first
    other = MirroredStore(ObjectStorage(url), tmp_path / "other")
    other.synchronize()
    assert other.open().version == first


def test_an_unsigned_version_is_not_copied(
    url: str, trainer: MirroredStore, tmp_path: Path
) -> None:
    publish(trainer)
    strict = MirroredStore(ObjectStorage(url), tmp_path / "strict", KEYS)
    with pytest.raises(BundleError, match="must be signed"):
        strict.synchronize()
    assert strict.list_versions() == []


def test_a_missing_bucket_is_an_outage(tmp_path: Path, object_store: ObjectStore) -> None:
    store = MirroredStore(ObjectStorage("s3://another-bucket/prefix"), tmp_path)
    with pytest.raises(OSError, match="bucket does not exist"):
        store.synchronize()


def test_a_download_ends_when_the_process_does(
    trainer: MirroredStore, replica: MirroredStore
) -> None:
    publish(trainer)
    replica.close()
    with pytest.raises(InterruptedError):
        replica.synchronize()
    assert replica.list_versions() == []
    assert replica.list_leftovers() == []


def test_processes_of_one_machine_share_a_copy(url: str, trainer: MirroredStore) -> None:
    version = publish(trainer)
    root = trainer.root.with_name("shared")
    stores = [MirroredStore(ObjectStorage(url), root) for _ in range(3)]

    def follow(store: MirroredStore) -> bool:
        store.synchronize(lists=True)
        return store.read_current() == version

    with ThreadPoolExecutor(3) as pool:
        assert any(pool.map(follow, stores))
    assert all(follow(store) for store in stores)


@contextmanager
def slow_download(
    url: str, root: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[threading.Event]:
    """Let another process of the machine download until the event is set, or the block ends."""
    begun, may_go_on = threading.Event(), threading.Event()
    other = MirroredStore(ObjectStorage(url), root)
    download = ObjectStorage.download

    def pause(storage: ObjectStorage, name: str, file: Path, keep_on: Callable[[], bool]) -> None:
        if storage is other.storage:
            begun.set()
            may_go_on.wait(20)
        download(storage, name, file, keep_on)

    monkeypatch.setattr(ObjectStorage, "download", pause)
    with ThreadPoolExecutor(1) as pool:
        downloading = pool.submit(other.synchronize)
        assert begun.wait(20)
        try:
            yield may_go_on
        finally:
            may_go_on.set()
            downloading.result()


def test_a_closed_store_waits_for_no_download(
    url: str, trainer: MirroredStore, replica: MirroredStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = publish(trainer)
    with slow_download(url, replica.root, monkeypatch), ThreadPoolExecutor(1) as pool:
        changing = pool.submit(replica.activate, version)
        replica.close()
        with pytest.raises(InterruptedError):
            changing.result(20)


def test_a_command_waits_for_another_download(
    url: str, trainer: MirroredStore, replica: MirroredStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = publish(trainer)

    def change() -> str | None:
        with replica.lock_pointers():
            return replica.read_current()

    with slow_download(url, replica.root, monkeypatch) as may_go_on:
        replica.synchronize()  # as a poll does
        assert replica.read_current() is None
        with ThreadPoolExecutor(2) as pool:
            copied = pool.submit(replica.synchronize, lists=True, waits=True)
            changed = pool.submit(change)
            sleep(0.3)
            assert not copied.done()
            assert not changed.done()
            may_go_on.set()
            copied.result()
            assert changed.result() == version
    assert replica.read_current() == version


def test_a_download_without_an_end_is_busy(
    url: str, trainer: MirroredStore, replica: MirroredStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(trainer)
    # As a service, which waits for a shorter time than a command.
    waiting = MirroredStore(ObjectStorage(url), replica.root, patience_seconds=0.2)
    with slow_download(url, replica.root, monkeypatch):
        with pytest.raises(StoreBusyError, match="may download bundles at a time"):
            waiting.synchronize(lists=True, waits=True)
        with (
            pytest.raises(StoreBusyError, match="may download bundles at a time"),
            waiting.lock_pointers(),
        ):
            pass


@pytest.mark.parametrize("location", ["gs://bucket/prefix", "s3://", "s3://A_b", "http://b/c"])
def test_other_locations_are_refused(location: str) -> None:
    with pytest.raises(BundleError, match=r"named like s3://bucket/prefix"):
        open_bundle_store(location)
