"""Versions that requests name: opened once for all who wait, and without delaying activations."""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from app.serving.opening_budget import OpeningBudget
from app.settings import Settings
from model.inference.predictor import Predictor
from model.store.store import BundleStore
from tests.app import tiny_bundle
from tests.app.client import REQUEST, Client, problem, recommend, running
from tests.processes import PATIENCE_SECONDS, eventually


class SlowStore:
    """Lets `BundleStore.open` of some versions wait for a permission, and counts the openings."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.held: set[str] = set()
        self.opened: list[str | None] = []
        self.entered = threading.Semaphore(0)
        self.leave = threading.Event()
        open_bundle = BundleStore.open

        def open_slowly(store: BundleStore, version: str | None = None) -> Predictor:
            self.opened.append(version)
            if version in self.held:
                self.entered.release()
                assert self.leave.wait(PATIENCE_SECONDS)
            return open_bundle(store, version)

        monkeypatch.setattr(BundleStore, "open", open_slowly)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[SlowStore]:
    store = SlowStore(monkeypatch)
    yield store
    store.leave.set()


def publish(bundle_store: Path, *seeds: int) -> list[str]:
    return [tiny_bundle.publish(bundle_store, seed=seed, activate=False) for seed in seeds]


def pin(client: Client, version: str) -> int:
    return client.post("/v1/recommendations", {**REQUEST, "model_version": version}).status_code


def test_requests_for_one_version_share_one_opening(
    client: Client, bundle_store: Path, slow: SlowStore
) -> None:
    (version,) = publish(bundle_store, 2)
    slow.held = {version}
    with ThreadPoolExecutor(8) as threads:
        pinning = [threads.submit(pin, client, version) for _ in range(8)]
        assert slow.entered.acquire(timeout=PATIENCE_SECONDS)
        manager = client.app.state.context.model_manager
        eventually(lambda: manager._awaiting_openings == 8)
        slow.leave.set()
        assert [each.result(PATIENCE_SECONDS) for each in pinning] == [200] * 8
    assert slow.opened.count(version) == 1


def test_a_damaged_version_is_not_opened_again_at_once(
    client: Client, bundle_store: Path, slow: SlowStore
) -> None:
    (version,) = publish(bundle_store, 2)
    weights = bundle_store / version / "weights.safetensors"
    sound = weights.read_bytes()
    weights.write_bytes(sound[:-1] + bytes([sound[-1] ^ 1]))
    assert [pin(client, version) for _ in range(3)] == [409] * 3
    assert slow.opened.count(version) == 1
    weights.write_bytes(sound)
    assert pin(client, version) == 200


def test_a_version_that_opens_slowly_delays_no_list(
    client: Client, bundle_store: Path, slow: SlowStore
) -> None:
    (version,) = publish(bundle_store, 2)
    slow.held = {version}
    with ThreadPoolExecutor(1) as threads:
        describing = threads.submit(client.get, f"/v1/models/{version}")
        assert slow.entered.acquire(timeout=PATIENCE_SECONDS)
        assert client.get("/v1/items").status_code == 200
        slow.leave.set()
        assert describing.result(PATIENCE_SECONDS).json()["missing"] is not None


def test_an_activation_does_not_wait_for_a_named_version(
    client: Client, bundle_store: Path, slow: SlowStore
) -> None:
    named, other, next_version = publish(bundle_store, 2, 3, 4)
    slow.held = {named, other}
    with ThreadPoolExecutor(8) as threads:
        pinning = [threads.submit(pin, client, each) for each in [named, other] * 3]
        assert slow.entered.acquire(timeout=PATIENCE_SECONDS)
        activated = client.post(f"/v1/models/{next_version}/activate", {})
        assert activated.status_code == 200, activated.text
        assert recommend(client)["model_version"] == next_version
        assert not any(each.done() for each in pinning)
        slow.leave.set()
        assert [each.result(PATIENCE_SECONDS) for each in pinning] == [200] * 6


@pytest.fixture
def crowded(client: Client, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Lists of the models hold every thread that the process shares, and more of them wait."""
    entered, leave = threading.Semaphore(0), threading.Event()
    list_versions = BundleStore.list_versions

    def list_slowly(store: BundleStore) -> list[str]:
        entered.release()
        assert leave.wait(PATIENCE_SECONDS)
        return list_versions(store)

    async def share(threads: ThreadPoolExecutor) -> None:
        asyncio.get_running_loop().set_default_executor(threads)

    monkeypatch.setattr(BundleStore, "list_versions", list_slowly)
    shared = ThreadPoolExecutor(2)
    client.portal.call(share, shared)
    with ThreadPoolExecutor(6) as threads:
        lists = [threads.submit(client.get, "/v1/models") for _ in range(6)]
        for _ in range(2):
            assert entered.acquire(timeout=PATIENCE_SECONDS)
        yield
        assert not any(each.done() for each in lists)
        leave.set()
        assert [each.result(PATIENCE_SECONDS).status_code for each in lists] == [200] * 6


@pytest.mark.usefixtures("crowded")
def test_an_activation_does_not_wait_for_lists_of_models(
    client: Client, bundle_store: Path
) -> None:
    first = recommend(client)["model_version"]
    (version,) = publish(bundle_store, 2)
    activated = client.post(f"/v1/models/{version}/activate", {})
    assert activated.status_code == 200, activated.text
    assert recommend(client)["model_version"] == version
    assert client.post("/v1/models/rollback", {}).status_code == 200
    assert recommend(client)["model_version"] == first


@pytest.mark.usefixtures("crowded")
def test_a_pointer_is_followed_while_models_are_listed(client: Client, bundle_store: Path) -> None:
    (version,) = publish(bundle_store, 2)
    BundleStore(bundle_store).activate(version)
    eventually(lambda: recommend(client)["model_version"] == version)


@pytest.mark.slow
def test_versions_beyond_the_bound_are_refused(
    client: Client, bundle_store: Path, slow: SlowStore
) -> None:
    versions = publish(bundle_store, *range(2, 11))
    slow.held = set(versions)
    with ThreadPoolExecutor(8) as threads:
        pinning = [threads.submit(pin, client, version) for version in versions[:8]]
        manager = client.app.state.context.model_manager
        eventually(lambda: manager._awaiting_openings == 8)
        refused = client.post("/v1/recommendations", {**REQUEST, "model_version": versions[8]})
        problem(refused, 503, "overloaded")
        assert int(refused.headers["Retry-After"]) >= 1
        assert client.metric("kairos_shed_requests_total", reason="versions") == 1
        slow.leave.set()
        assert [each.result(PATIENCE_SECONDS) for each in pinning] == [200] * 8


def test_a_version_that_fails_fails_every_waiting_request(
    client: Client, bundle_store: Path, slow: SlowStore
) -> None:
    (version,) = publish(bundle_store, 2)
    tiny_bundle.damage(bundle_store, version)
    slow.held = {version}
    with ThreadPoolExecutor(3) as threads:
        pinning = [threads.submit(pin, client, version) for _ in range(3)]
        assert slow.entered.acquire(timeout=PATIENCE_SECONDS)
        slow.leave.set()
        assert [each.result(PATIENCE_SECONDS) for each in pinning] == [409] * 3


def test_versions_that_take_turns_are_not_opened_without_bound(
    settings: Settings, bundle_store: Path
) -> None:
    versions = publish(bundle_store, 2, 3)
    with running(settings.model_copy(update={"pinned_versions": 1})) as client:
        manager = client.app.state.context.model_manager
        assert [pin(client, version) for version in versions * 2] == [200] * 4
        manager._opening_budget.spend(100.0)
        assert pin(client, versions[1]) == 200  # it is open
        refused = client.post("/v1/recommendations", {**REQUEST, "model_version": versions[0]})
        detail = problem(refused, 503, "overloaded")["detail"]
        assert detail.startswith("1 versions stay open")
        assert int(refused.headers["Retry-After"]) > 300


def test_openings_may_take_a_fifth_of_the_time() -> None:
    now = 0.0
    budget = OpeningBudget(clock=lambda: now)
    budget.spend(12.0)
    assert budget.compute_wait() == 10
    now = 9.0
    assert budget.compute_wait() == 1
    now = 10.5
    assert budget.compute_wait() == 0
