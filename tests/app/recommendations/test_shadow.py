"""A shadow version computes the same requests without any effect on the answers."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.settings import Settings
from model.inference.predictor import Predictor
from model.store.store import BundleStore
from model.store.traffic import Traffic
from tests.app import tiny_bundle
from tests.app.client import REQUEST, Client, recommend, running
from tests.processes import PATIENCE_SECONDS, eventually


def outcomes(client: Client, result: str) -> float:
    return client.metric("kairos_shadow_answers_total", result=result)


def shadow_of(client: Client) -> Predictor | None:
    shadow: Predictor | None = client.app.state.context.model_manager.active.shadow
    return shadow


@pytest.fixture
def shadow(client: Client, bundle_store: Path) -> str:
    """The shadow version."""
    version = tiny_bundle.publish(bundle_store, seed=2, activate=False)
    BundleStore(bundle_store).route(Traffic(shadow=version))
    eventually(lambda: shadow_of(client) is not None)
    return version


def without_id(answer: dict[str, Any]) -> dict[str, Any]:
    return {field: value for field, value in answer.items() if field != "recommendation_id"}


def test_a_shadow_is_compared_and_changes_no_answer(client: Client, bundle_store: Path) -> None:
    body = {**REQUEST, "query_time": "2026-02-01T00:00:00Z", "explain": "heads"}
    alone = client.post("/v1/recommendations", body).json()
    version = tiny_bundle.publish(bundle_store, seed=2, activate=False)
    BundleStore(bundle_store).route(Traffic(shadow=version))
    eventually(lambda: shadow_of(client) is not None)
    beside = client.post("/v1/recommendations", body).json()
    assert without_id(beside) == without_id(alone)
    eventually(lambda: outcomes(client, "compared") == 1)
    assert client.metric("kairos_shadow_overlap_count") == 1


def test_a_shadow_of_the_same_weights_overlaps_wholly(client: Client, bundle_store: Path) -> None:
    version = tiny_bundle.publish(bundle_store, seed=1, activate=False)
    BundleStore(bundle_store).route(Traffic(shadow=version))
    eventually(lambda: shadow_of(client) is not None)
    recommend(client)
    eventually(lambda: client.metric("kairos_shadow_overlap_count") == 1)
    assert client.metric("kairos_shadow_overlap_sum") == 1


def test_a_shadow_gets_the_same_filters(client: Client, shadow: str) -> None:
    every_other = {**REQUEST, "n": 10, "exclude_seen": False, "categories": {"any": ["even"]}}
    assert client.post("/v1/recommendations", every_other).status_code == 200
    eventually(lambda: client.metric("kairos_shadow_overlap_count") == 1)
    # Ten items of one category exist, so both versions return all of them.
    assert client.metric("kairos_shadow_overlap_sum") == 1


def test_a_shadow_is_neither_counted_nor_an_impression(client: Client, shadow: str) -> None:
    recommend(client)
    eventually(lambda: outcomes(client, "compared") == 1)
    assert client.metric("kairos_recommendations_total", fallback="none") == 1
    assert client.metric("kairos_inference_queue_seconds_count", **{"class": "short"}) == 1


def test_a_request_that_pins_a_version_is_not_compared(client: Client, shadow: str) -> None:
    pinned = {**REQUEST, "model_version": shadow}
    assert client.post("/v1/recommendations", pinned).json()["model_version"] == shadow
    recommend(client)
    eventually(lambda: outcomes(client, "compared") == 1)


def test_a_preview_is_not_compared(client: Client, shadow: str) -> None:
    client.post("/v1/recommendations", {**REQUEST, "shown": False})
    recommend(client)
    eventually(lambda: outcomes(client, "compared") == 1)
    assert client.metric("kairos_shadow_answers_total", result="compared") == 1


def test_a_failing_shadow_is_counted_and_changes_no_answer(
    client: Client, shadow: str, capfd: pytest.CaptureFixture[str]
) -> None:
    predictor = shadow_of(client)
    assert predictor is not None
    predictor.bundle = replace(predictor.bundle, index=None)  # type: ignore[arg-type]
    recommend(client)
    eventually(lambda: outcomes(client, "failed") == 1)
    recommend(client)
    eventually(lambda: outcomes(client, "failed") == 2)
    assert outcomes(client, "compared") == 0
    assert "shadow_failed" in "".join(capfd.readouterr())


def test_an_answer_does_not_wait_for_the_shadow(client: Client, shadow: str) -> None:
    entered, leave = threading.Event(), threading.Event()

    def hang(*_: object, **__: object) -> None:
        entered.set()
        leave.wait(PATIENCE_SECONDS)
        raise ValueError("woken")

    predictor = shadow_of(client)
    assert predictor is not None
    predictor.recommend_in_steps = hang  # type: ignore[method-assign, assignment]
    answer = recommend(client)  # returns, although the shadow hangs
    assert entered.wait(PATIENCE_SECONDS)
    assert answer["model_version"] != shadow
    leave.set()
    eventually(lambda: outcomes(client, "failed") == 1)


def test_a_shadow_is_skipped_while_requests_wait(client: Client, shadow: str) -> None:
    inference = client.app.state.context.inference
    first, second, entered = threading.Event(), threading.Event(), threading.Event()

    def occupy() -> None:
        entered.set()
        first.wait(PATIENCE_SECONDS)

    client.portal.start_task_soon(inference.call, occupy)
    assert entered.wait(PATIENCE_SECONDS)
    with ThreadPoolExecutor(1) as thread:
        answer = thread.submit(recommend, client)
        eventually(lambda: client.metric("kairos_inference_in_progress") == 1)
        client.portal.start_task_soon(inference.call, lambda: second.wait(PATIENCE_SECONDS))
        first.set()
        assert answer.result(PATIENCE_SECONDS)["model_version"] != shadow
        assert outcomes(client, "skipped") == 1
        second.set()
    assert outcomes(client, "compared") == 0


def test_without_a_queue_the_shadow_is_skipped_first(
    settings: Settings, bundle_store: Path
) -> None:
    version = tiny_bundle.publish(bundle_store, seed=2, activate=False)
    BundleStore(bundle_store).route(Traffic(shadow=version))
    with running(settings.model_copy(update={"inference_queue": 0})) as client:
        for body in range(1, 6):
            recommend(client)
            eventually(lambda body=body: sum_of(client) == body)
        assert outcomes(client, "failed") == 0


def sum_of(client: Client) -> float:
    return sum(outcomes(client, result) for result in ("compared", "skipped", "failed"))


def test_a_shadow_that_does_not_open_is_refused(client: Client, bundle_store: Path) -> None:
    version = tiny_bundle.publish(bundle_store, seed=2, activate=False)
    tiny_bundle.damage(bundle_store, version)
    BundleStore(bundle_store).route(Traffic(shadow=version))
    eventually(lambda: client.metric("kairos_model_swaps_total", result="refused") == 1)
    recommend(client)
    assert shadow_of(client) is None
    assert sum_of(client) == 0
