"""The model manager follows CURRENT: swaps, refusals, and requests during a swap."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from app.settings import Settings
from model.store.store import CURRENT, BundleStore
from tests.app import tiny_bundle
from tests.app.client import REQUEST, Client, recommend, running
from tests.processes import PATIENCE_SECONDS, eventually


def serves(client: Client, version: str) -> bool:
    return recommend(client)["model_version"] == version


def swaps(client: Client, result: str) -> float:
    return client.metric("kairos_model_swaps_total", result=result)


def test_a_newly_activated_bundle_takes_over(client: Client, bundle_store: Path) -> None:
    old = recommend(client)["model_version"]
    new = tiny_bundle.publish(bundle_store, seed=2)
    eventually(lambda: serves(client, new))
    assert client.metric("kairos_model_info", version=new) == 1
    assert client.metric("kairos_model_info", version=old) == 0
    assert client.metric("kairos_index_items") == len(tiny_bundle.ITEM_IDS)
    assert swaps(client, "activated") == 2


def test_a_damaged_bundle_is_refused_once_and_not_activated(
    client: Client, bundle_store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = recommend(client)["model_version"]
    attempts: list[str | None] = []
    open_bundle = BundleStore.open

    def counting_open(store: BundleStore, version: str | None = None) -> object:
        attempts.append(version)
        return open_bundle(store, version)

    monkeypatch.setattr(BundleStore, "open", counting_open)
    damaged = tiny_bundle.publish(bundle_store, seed=2, activate=False)
    tiny_bundle.damage(bundle_store, damaged)
    BundleStore(bundle_store).activate(damaged)
    eventually(lambda: swaps(client, "refused") == 1)
    time.sleep(0.2)  # ten more polls of CURRENT
    assert attempts == [damaged]
    assert serves(client, old)
    assert client.get("/health/ready").status_code == 200


def test_after_a_refusal_the_next_bundle_takes_over(client: Client, bundle_store: Path) -> None:
    old = recommend(client)["model_version"]
    damaged = tiny_bundle.publish(bundle_store, seed=2, activate=False)
    tiny_bundle.damage(bundle_store, damaged)
    store = BundleStore(bundle_store)
    store.activate(damaged)
    eventually(lambda: swaps(client, "refused") == 1)
    store.activate(old)
    time.sleep(0.1)
    tiny_bundle.damage(bundle_store, damaged)  # flips the same bit back
    store.activate(damaged)
    eventually(lambda: serves(client, damaged))


def test_a_pointer_to_no_bundle_is_refused(client: Client, bundle_store: Path) -> None:
    old = recommend(client)["model_version"]
    for pointer in (b"../../etc", b"20200101T000000Z-000000000000", b"\0", b"\xff\xfe"):
        refused = swaps(client, "refused")
        (bundle_store / CURRENT).write_bytes(pointer)
        eventually(lambda refused=refused: swaps(client, "refused") == refused + 1)
        assert serves(client, old)


def test_a_store_that_vanishes_leaves_the_bundle_serving(
    client: Client, bundle_store: Path
) -> None:
    old = recommend(client)["model_version"]
    bundle_store.rename(bundle_store.with_name("elsewhere"))
    bundle_store.write_text("not a directory")
    time.sleep(0.1)
    assert serves(client, old)


def test_the_service_starts_without_a_bundle_and_is_not_ready(
    settings: Settings, tmp_path: Path
) -> None:
    root = tmp_path / "nothing yet"
    with running(settings.model_copy(update={"bundle_store": root})) as client:
        response = client.post("/v1/recommendations", REQUEST)
        assert response.status_code == 503
        assert response.json()["code"] == "no_model"
        assert "Retry-After" in response.headers
        ready = client.get("/health/ready")
        assert (ready.status_code, ready.json()["database"]) == (503, "ok")
        assert "published bundle" in ready.json()["model"]
        version = tiny_bundle.publish(root, seed=3)
        eventually(lambda: client.get("/health/ready").status_code == 200)
        assert serves(client, version)


def test_a_service_without_a_model_names_the_fault_of_its_store(
    settings: Settings, tmp_path: Path
) -> None:
    root = tmp_path / "store"
    root.mkdir()
    (root / CURRENT).write_text("20260101T000000Z-0123456789ab\n")
    with running(settings.model_copy(update={"bundle_store": root})) as client:
        ready = client.get("/health/ready")
        assert ready.status_code == 503
        assert "'20260101T000000Z-0123456789ab' does not open" in ready.json()["model"]


def test_a_start_removes_what_a_killed_publisher_left(
    settings: Settings, bundle_store: Path
) -> None:
    leftover = bundle_store / ".incoming-killed"
    leftover.mkdir()
    (leftover / "weights.safetensors").write_bytes(b"half")
    with running(settings):
        assert not leftover.exists()


def test_a_request_finishes_on_the_bundle_it_began_with(client: Client, bundle_store: Path) -> None:
    old = recommend(client)
    entered, leave = threading.Event(), threading.Event()

    def occupy() -> None:
        entered.set()
        leave.wait(PATIENCE_SECONDS)

    busy = client.portal.start_task_soon(client.app.state.context.inference.call, occupy)
    assert entered.wait(PATIENCE_SECONDS)
    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(recommend, client)
        eventually(lambda: client.metric("kairos_inference_in_progress") == 1)
        new = tiny_bundle.publish(bundle_store, seed=2)
        eventually(lambda: client.metric("kairos_model_info", version=new) == 1)
        leave.set()
        answer = waiting.result(PATIENCE_SECONDS)
    busy.result(PATIENCE_SECONDS)
    assert answer["model_version"] == old["model_version"]
    assert answer["items"] == old["items"]
    assert serves(client, new)


@pytest.fixture
def patient(settings: Settings) -> Iterator[Client]:
    """A service that waits long instead of shedding load on a busy machine."""
    with running(settings.model_copy(update={"inference_patience_seconds": 60.0})) as client:
        yield client


@pytest.mark.slow
def test_no_request_fails_while_bundles_change_under_load(
    patient: Client, bundle_store: Path
) -> None:
    client = patient
    versions = [recommend(client)["model_version"]]
    versions += [tiny_bundle.publish(bundle_store, seed=seed, activate=False) for seed in (2, 3)]
    store = BundleStore(bundle_store)
    expected: dict[str, Any] = {}
    for version in versions:
        store.activate(version)
        eventually(lambda version=version: serves(client, version))
        expected[version] = recommend(client)["items"]
    assert len({str(items) for items in expected.values()}) == len(versions)
    stop = threading.Event()
    answers: list[dict[str, Any]] = []

    def request_continuously() -> None:
        while not stop.is_set():
            answers.append(recommend(client))

    with ThreadPoolExecutor(3) as threads:
        requesting = [threads.submit(request_continuously) for _ in range(3)]
        before = swaps(client, "activated")
        for number in range(30):
            store.activate(versions[number % 3])
            eventually(lambda number=number: swaps(client, "activated") == before + number + 1)
        stop.set()
        for each in requesting:
            each.result(PATIENCE_SECONDS)
    assert {answer["model_version"] for answer in answers} == set(versions)
    assert all(answer["items"] == expected[answer["model_version"]] for answer in answers)
