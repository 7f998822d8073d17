"""The contract of bundle stores: what one process changes, every other one sees, whole."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from model.bundle.manifest import WEIGHTS
from model.bundle.signature import BundleKeys
from model.errors import BundleError, NoCurrentBundleError, StoreBusyError
from model.store.store import BundleStore
from model.store.traffic import Traffic
from tests import tiny

KEYS = BundleKeys(["0123456789abcdef0123456789abcdef"])


def publish(store: BundleStore, seed: int = 0, *, activate: bool = True) -> str:
    config = tiny.recommender_config()
    return store.publish(tiny.writer(config, tiny.recommender(config, seed)), activate=activate)


class BundleStoreContract:
    """Inherit, and say how a process opens the store, and how it sees what others changed."""

    def open_store(self, machine: str, keys: BundleKeys | None = None) -> BundleStore:
        """Open the one store of a test, as a process of a machine does."""
        raise NotImplementedError

    def look(self, store: BundleStore) -> BundleStore:
        """Let a process see what others have changed."""
        return store

    def test_a_new_store_is_empty(self) -> None:
        store = self.look(self.open_store("a"))
        assert store.read_current() is None
        assert store.list_versions() == []
        with pytest.raises(NoCurrentBundleError):
            store.open()

    def test_what_one_publishes_another_serves(self) -> None:
        here, there = self.open_store("a"), self.open_store("b")
        version = publish(here)
        assert self.look(there).read_current() == version
        assert there.open().version == version
        assert there.list_versions() == [version]

    def test_what_one_activates_another_serves(self) -> None:
        here, there = self.open_store("a"), self.open_store("b")
        first, second = publish(here), publish(here, 1, activate=False)
        assert self.look(there).read_current() == first
        there.activate(second)
        assert self.look(here).read_current() == second
        here.activate(first)
        assert self.look(there).read_current() == first

    def test_traffic_of_one_is_that_of_another(self) -> None:
        here, there = self.open_store("a"), self.open_store("b")
        publish(here)
        traffic = Traffic(challenger=publish(here, 1, activate=False), share=0.25)
        here.route(traffic)
        assert self.look(there).read_traffic() == traffic
        assert there.open(traffic.challenger).version == traffic.challenger
        there.route(Traffic())
        assert self.look(here).read_traffic() == Traffic()

    @pytest.mark.parametrize("version", ["nothing", "..", "../elsewhere", "", "/etc"])
    def test_an_unpublished_version_is_refused(self, version: str) -> None:
        store = self.open_store("a")
        first = publish(store)
        with pytest.raises(BundleError, match="must be one of those published"):
            store.activate(version)
        with pytest.raises(BundleError, match="must be one of those published"):
            store.route(Traffic(shadow=version))
        assert self.look(self.open_store("b")).read_current() == first

    def test_a_failing_writer_publishes_nothing(self) -> None:
        here, there = self.open_store("a"), self.open_store("b")
        first = publish(here)

        def fail(directory: Path) -> str:
            (directory / WEIGHTS).write_bytes(b"half")
            raise RuntimeError("out of paper")

        with pytest.raises(RuntimeError, match="out of paper"):
            here.publish(fail)
        for store in (here, there):
            assert self.look(store).list_versions() == [first]
            assert store.list_leftovers() == []

    def test_a_damaged_bundle_is_not_published(self) -> None:
        here, there = self.open_store("a"), self.open_store("b")
        first, config = publish(here), tiny.recommender_config()
        write = tiny.writer(config, tiny.recommender(config, 1))

        def write_badly(directory: Path) -> str:
            version = write(directory)
            (directory / WEIGHTS).write_bytes(b"gibberish")
            return version

        with pytest.raises(BundleError, match="is altered"):
            here.publish(write_badly)
        for store in (here, there):
            assert self.look(store).list_versions() == [first]
            assert store.read_current() == first

    def test_a_bundle_from_outside_is_copied_once(self, tmp_path: Path) -> None:
        here, there = self.open_store("a"), self.open_store("b")
        bundle = tiny.write_bundle(tmp_path / "elsewhere")
        here.add_copy(bundle, activate=False)
        assert self.look(there).read_current() is None
        assert there.add_copy(bundle) == bundle.name
        assert self.look(here).list_versions() == [bundle.name]
        assert here.open().version == bundle.name

    def test_a_removed_version_is_gone_everywhere(self) -> None:
        here, there = self.open_store("a"), self.open_store("b")
        old, current = publish(here), publish(here, 1)
        assert {*self.look(there).list_versions()} == {old, current}
        here.remove(old)
        # Twice: what is missing in one listing may have been published since it began.
        assert self.look(self.look(there)).list_versions() == [current]
        with pytest.raises(BundleError, match="must be one of those published"):
            there.activate(old)

    def test_a_serving_version_cannot_be_removed(self) -> None:
        here, there = self.open_store("a"), self.open_store("b")
        old, current = publish(here), publish(here, 1)
        self.look(there).route(Traffic(shadow=old))
        for version in (old, current):
            with pytest.raises(BundleError, match="must not serve when it is removed"):
                here.remove(version)
        assert {*self.look(there).list_versions()} == {old, current}

    def test_versions_are_listed_alike_everywhere(self) -> None:
        here, there = self.open_store("a"), self.open_store("b")
        versions = [publish(here, seed) for seed in range(3)]
        assert {*self.look(there).list_versions()} == {*versions}
        assert there.list_versions()[0].partition("-")[0] == max(versions).partition("-")[0]

    def test_a_failing_change_restores_the_pointers(self) -> None:
        here, there = self.open_store("a"), self.open_store("b")
        first, second = publish(here), publish(here, 1, activate=False)

        def change_and_fail() -> None:
            with here.lock_pointers():
                here.activate(second)
                here.route(Traffic(shadow=second))
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            change_and_fail()
        for store in (here, there):
            assert self.look(store).read_current() == first
            assert store.read_traffic() == Traffic()

    def test_a_failing_first_change_leaves_no_pointer(self) -> None:
        store = self.open_store("a")
        version = publish(store, activate=False)

        def change_and_fail() -> None:
            with store.lock_pointers():
                store.activate(version)
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            change_and_fail()
        assert self.look(store).read_current() is None
        assert self.look(self.open_store("b")).read_current() is None

    def test_of_two_changes_at_once_one_succeeds(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("model.store.store._PATIENCE_SECONDS", 0.2)
        here, there = self.open_store("a"), self.open_store("b")
        publish(here)
        versions = [publish(here, seed, activate=False) for seed in (1, 2)]
        self.look(there)
        meeting = threading.Barrier(2)

        def change(store: BundleStore, version: str) -> str | None:
            try:
                with store.lock_pointers():
                    with suppress(threading.BrokenBarrierError):
                        meeting.wait(1)
                    store.activate(version)
            except StoreBusyError:
                return None
            return version

        with ThreadPoolExecutor(2) as pool:
            outcomes = [*pool.map(change, (here, there), versions)]
        (winner,) = (version for version in outcomes if version is not None)
        assert self.look(here).read_current() == winner
        assert self.look(there).read_current() == winner

    def test_changes_at_once_follow_one_another(self) -> None:
        stores = [self.open_store(machine) for machine in "abcd"]
        first = publish(stores[0])
        versions = [publish(stores[0], seed, activate=False) for seed in range(1, 7)]
        for store in stores:
            self.look(store)

        def change(store: BundleStore, version: str) -> tuple[str | None, str]:
            while True:
                with suppress(StoreBusyError), store.lock_pointers():
                    previous = store.read_current()
                    store.activate(version)
                    break
            return previous, version

        with ThreadPoolExecutor(4) as pool:
            followed = dict(pool.map(change, [*stores, *stores[:2]], versions))
        # Each change found what another one had left: they form one chain, and none was lost.
        chain: list[str | None] = [first]
        while chain[-1] in followed:
            chain.append(followed[chain[-1]])
        assert {*chain} == {first, *versions}
        assert {self.look(store).read_current() for store in stores} == {chain[-1]}

    def test_a_signature_is_seen_everywhere(self) -> None:
        here = self.open_store("a")
        version = publish(here)
        there = self.open_store("b", KEYS)
        with suppress(BundleError):
            self.look(there)
        with pytest.raises(BundleError):
            there.open(version)
        self.open_store("a", KEYS).sign(version)
        assert self.look(there).open(version).version == version
