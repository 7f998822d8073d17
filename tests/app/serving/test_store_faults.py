"""Faults of single files of the store: sound bundles are served, whatever is broken beside them."""

import errno
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from app.settings import Settings
from model.bundle.manifest import MANIFEST
from model.store.last_known_good import LastKnownGood
from model.store.store import CURRENT, LAST_KNOWN_GOOD, TRAFFIC, BundleStore
from model.store.traffic import Traffic
from tests.app import tiny_bundle
from tests.app.client import Client, recommend, running
from tests.processes import eventually

Break = Callable[[BundleStore], None]

USER = {"user_id": "u1", "n": 3}


def serves(client: Client, version: str) -> bool:
    return bool(recommend(client)["model_version"] == version)


def serves_if_ready(client: Client, version: str) -> bool:
    return client.get("/health/ready").status_code == 200 and serves(client, version)


def fault(client: Client, pointer: str) -> float:
    return client.metric("kairos_pointer_faults", pointer=pointer)


def polls(client: Client) -> None:
    """Read the store twice more: an answer after it does not depend on what was read before."""
    for _ in range(2):
        client.portal.call(client.app.state.context.model_manager.refresh)


@contextmanager
def unreadable(*names: str) -> Iterator[None]:
    """Make opening files and directories of these names fail, as a network file system may."""
    with pytest.MonkeyPatch.context() as patch:
        for function in ("open", "stat", "scandir"):
            original = getattr(os, function)

            def fail(path: object, *rest: object, original: Callable = original, **named: object):  # type: ignore[no-untyped-def,type-arg]
                if isinstance(path, str | os.PathLike) and Path(path).name in names:
                    raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), str(path))
                return original(path, *rest, **named)

            patch.setattr(os, function, fail)
        yield


def remove(name: str) -> Break:
    return lambda store: (store.root / name).unlink()


def write(name: str, content: bytes) -> Break:
    return lambda store: (store.root / name).write_bytes(content) and None


def make_directory(name: str) -> Break:
    def replace(store: BundleStore) -> None:
        (store.root / name).unlink(missing_ok=True)
        (store.root / name).mkdir()

    return replace


def make_pipe(name: str) -> Break:
    def replace(store: BundleStore) -> None:
        (store.root / name).unlink(missing_ok=True)
        os.mkfifo(store.root / name)

    return replace


def damage_newest(store: BundleStore) -> None:
    tiny_bundle.damage(store.root, str(store.read_current()))


def remove_newest(store: BundleStore) -> None:
    shutil.rmtree(store.root / str(store.read_current()))


def remove_manifest_of_newest(store: BundleStore) -> None:
    (store.root / str(store.read_current()) / MANIFEST).unlink()


FAULTS: dict[str, Break] = {
    "CURRENT missing": remove(CURRENT),
    "CURRENT empty": write(CURRENT, b""),
    "CURRENT garbage": write(CURRENT, b"\xff\x00" * 100_000),
    "CURRENT a path": write(CURRENT, b"../bundles"),
    "CURRENT too long": write(CURRENT, b"x" * 5_000),
    "CURRENT a directory": make_directory(CURRENT),
    "CURRENT a pipe": make_pipe(CURRENT),
    "TRAFFIC garbage": write(TRAFFIC, b"\xff{"),
    "TRAFFIC empty": write(TRAFFIC, b""),
    "TRAFFIC of other types": write(TRAFFIC, b'{"challenger": 5}'),
    "TRAFFIC a directory": make_directory(TRAFFIC),
    "TRAFFIC names nothing": write(TRAFFIC, b'{"challenger": "x", "share": 1, "shadow": "../y"}'),
    "record garbage": write(LAST_KNOWN_GOOD, b"\xff"),
    "record a directory": make_directory(LAST_KNOWN_GOOD),
    "bundle damaged": damage_newest,
    "bundle missing": remove_newest,
    "bundle without manifest": remove_manifest_of_newest,
}


@pytest.fixture
def store(bundle_store: Path) -> BundleStore:
    """A store whose two versions both served, the newest last."""
    store = BundleStore(bundle_store)
    record = LastKnownGood().with_current(str(store.read_current()))
    newest = tiny_bundle.publish(bundle_store, seed=2)
    store.record_last_known_good(record.with_current(newest))
    return store


def test_versions_that_served_are_recorded(settings: Settings, bundle_store: Path) -> None:
    store = BundleStore(bundle_store)
    first = str(store.read_current())
    with running(settings):
        eventually(lambda: store.read_last_known_good().versions == (first,))
        second = tiny_bundle.publish(bundle_store, seed=2)
        eventually(lambda: store.read_last_known_good().versions == (first, second))
        store.activate(first)
        eventually(lambda: store.read_last_known_good().versions == (first,))


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_while_serving_stops_nothing(
    settings: Settings, store: BundleStore, name: str
) -> None:
    newest = str(store.read_current())
    with running(settings) as client:
        FAULTS[name](store)
        polls(client)
        assert serves(client, newest), "a fault changes no answer"
        assert client.get("/health/ready").status_code == 200
        if (store.root / CURRENT).is_dir():
            (store.root / CURRENT).rmdir()
        (store.root / CURRENT).unlink(missing_ok=True)
        other = tiny_bundle.publish(store.root, seed=3)
        eventually(lambda: serves(client, other))  # nor does it stop the next activation
        eventually(lambda: fault(client, "current") == 0)


@pytest.mark.parametrize("name", FAULTS)
def test_a_sound_bundle_serves_after_a_restart(
    settings: Settings, store: BundleStore, name: str
) -> None:
    first, newest = store.read_last_known_good().versions
    FAULTS[name](store)
    with running(settings) as client:
        served = recommend(client)["model_version"]
        assert served == (first if name.startswith("bundle") else newest)
        polls(client)
        ready = client.get("/health/ready")
        assert ready.status_code == 200
        if name.startswith(("CURRENT", "bundle")):
            assert fault(client, "current") == 1
            assert served in ready.json()["model"]


@pytest.mark.parametrize("names", [(CURRENT,), (TRAFFIC,), (CURRENT, TRAFFIC), (MANIFEST,)])
def test_stale_file_handles_change_no_answer(
    settings: Settings, store: BundleStore, names: tuple[str, ...]
) -> None:
    newest = str(store.read_current())
    with running(settings) as client, unreadable(*names):
        polls(client)
        assert serves(client, newest)


@pytest.mark.parametrize("names", [(CURRENT,), (TRAFFIC,), (CURRENT, TRAFFIC), (MANIFEST,)])
def test_stale_file_handles_at_start_are_waited_out(
    settings: Settings,
    store: BundleStore,
    names: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    newest = str(store.read_current())
    monkeypatch.setattr("app.serving.refusals.FIRST_WAIT_SECONDS", 0.0)
    with ExitStack() as stack:
        with unreadable(*names):
            client = stack.enter_context(running(settings))
            ready = client.get("/health/ready").status_code
            assert ready == (503 if names == (MANIFEST,) else 200)
        eventually(lambda: client.get("/health/ready").json()["model"] == "ok")
        assert serves(client, newest)


def test_an_unmounted_store_is_followed_again_when_it_is_back(
    settings: Settings, store: BundleStore
) -> None:
    newest = str(store.read_current())
    challenger, other = store.read_last_known_good().versions[0], store.root.with_name("mounted")
    store.route(Traffic(challenger=challenger, share=1.0))
    with running(settings) as client:
        store.root.rename(other)
        for mount_point in (lambda: None, store.root.mkdir):
            mount_point()
            polls(client)
            assert serves(client, newest)
            answer = client.post("/v1/recommendations", USER).json()
            assert answer["model_version"] == challenger
        assert list(store.root.iterdir()) == []
        store.root.rmdir()
        other.rename(store.root)
        third = tiny_bundle.publish(store.root, seed=3)
        eventually(lambda: serves(client, third))


def test_a_field_of_a_newer_release_is_ignored(settings: Settings, store: BundleStore) -> None:
    first, newest = store.read_last_known_good().versions
    traffic = {"challenger": first, "share": 1.0, "shadow": None, "ramp": {"until": 5}}
    (store.root / TRAFFIC).write_text(json.dumps(traffic))
    with running(settings) as client:
        answer = client.post("/v1/recommendations", USER).json()
        assert answer["model_version"] == first
        assert serves(client, newest)
        assert client.get("/v1/models/traffic").json()["challenger"] == first


def test_a_broken_traffic_file_keeps_the_challenger(settings: Settings, store: BundleStore) -> None:
    first, _ = store.read_last_known_good().versions
    store.route(Traffic(challenger=first, share=1.0))
    for restarted in (False, True):
        with running(settings) as client:
            if not restarted:
                eventually(lambda: store.read_last_known_good().traffic.challenger == first)
                (store.root / TRAFFIC).write_bytes(b"{")
                polls(client)
            assert fault(client, "traffic") == 1
            answer = client.post("/v1/recommendations", USER).json()
            assert answer["model_version"] == first


def test_a_bundle_that_is_copied_back_is_opened(settings: Settings, store: BundleStore) -> None:
    newest = str(store.read_current())
    saved = store.root.with_name("saved")
    (store.root / newest).rename(saved)
    (store.root / LAST_KNOWN_GOOD).unlink()
    with running(settings) as client:
        polls(client)
        assert client.get("/health/ready").status_code == 503
        shutil.copytree(saved, store.root / newest)
        eventually(lambda: client.get("/health/ready").status_code == 200)
        assert serves(client, newest)
        eventually(lambda: fault(client, "current") == 0)


def test_a_bundle_repaired_in_place_is_opened(settings: Settings, store: BundleStore) -> None:
    newest = str(store.read_current())
    tiny_bundle.damage(store.root, newest)
    with running(settings) as client:
        assert not serves(client, newest)
        tiny_bundle.damage(store.root, newest)  # flips the same bit back
        eventually(lambda: serves(client, newest))


def test_a_refused_bundle_is_tried_again_after_a_while(
    settings: Settings, store: BundleStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    newest = str(store.read_current())
    monkeypatch.setattr("app.serving.refusals.FIRST_WAIT_SECONDS", 0.0)
    with ExitStack() as stack:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(BundleStore, "open", lambda *_: 1 / 0)
            client = stack.enter_context(running(settings))
            assert client.get("/health/ready").status_code == 503
        eventually(lambda: serves_if_ready(client, newest))


def test_a_version_rolled_back_from_never_serves_by_itself() -> None:
    record = LastKnownGood()
    for version in ("v1", "v2", "v3", "v2"):
        record = record.with_current(version)
    assert record.versions == ("v1", "v2")
    assert record.with_current("v2") == record
