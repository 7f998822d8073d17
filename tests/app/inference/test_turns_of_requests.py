"""Requests that take the models long: in steps, given up with their clients, as in one piece."""

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from app.inference.fair_queue import CallClass
from model.history import Event, Query
from model.inference.answers import Constraints
from model.inference.predictor import Predictor
from model.inference.steps import Steps, complete
from tests.app import tiny_bundle
from tests.app.client import Client, recommend
from tests.processes import PATIENCE_SECONDS, eventually

INSTANTS = [tiny_bundle.FIRST_AT // 1_000_000 + hour * 3600 for hour in range(200)]
SWEEP = {
    "history": [
        {"item_id": f"i{hour % 20}", "timestamp": instant} for hour, instant in enumerate(INSTANTS)
    ],
    "query_times": INSTANTS,
    "n": 20,
}


class Pauses:
    """Lets every sweep wait after its third step until it may go on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reached, self.go_on = threading.Event(), threading.Event()
        self.steps = 0
        sweep_in_steps = Predictor.sweep_in_steps

        def sweep_with_pause(*arguments: Any, **options: Any) -> Steps[Any]:
            steps = sweep_in_steps(*arguments, **options)
            while True:
                try:
                    next(steps)
                except StopIteration as last:
                    return last.value
                self.steps += 1
                if self.steps == 3:
                    self.reached.set()
                    assert self.go_on.wait(PATIENCE_SECONDS)
                yield

        monkeypatch.setattr(Predictor, "sweep_in_steps", sweep_with_pause)


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> Iterator[Pauses]:
    paused = Pauses(monkeypatch)
    yield paused
    paused.go_on.set()


def test_a_sweep_of_a_client_that_disconnects_is_given_up(client: Client, pauses: Pauses) -> None:
    async def request_and_disconnect() -> None:
        body = orjson.dumps(SWEEP)
        messages = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> dict[str, object]:
            if messages:
                return messages.pop()
            await asyncio.to_thread(pauses.reached.wait, PATIENCE_SECONDS)
            return {"type": "http.disconnect"}

        async def send(_: object) -> None:
            pass

        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": "POST",
            "path": "/v1/attention",
            "raw_path": b"/v1/attention",
            "query_string": b"",
            "root_path": "",
            "scheme": "http",
            "headers": [
                (b"content-type", b"application/json"),
                (b"host", b"localhost"),
                (b"authorization", f"Bearer {client.token}".encode()),
            ],
            "client": ("127.0.0.1", 1),
            "server": ("localhost", 80),
        }
        await client.app(scope, receive, send)

    client.portal.call(request_and_disconnect)
    assert client.metric("kairos_inference_abandoned_total") == 1
    pauses.go_on.set()
    recommend(client)  # the thread is free again
    assert pauses.steps == 3
    assert client.metric("kairos_inference_in_progress") == 0


def test_a_recommendation_is_answered_while_a_sweep_is_under_way(client: Client) -> None:
    inference = client.app.state.context.inference
    first, entered, go_on = threading.Event(), threading.Event(), threading.Event()

    def long_steps() -> Steps[None]:
        entered.set()
        assert first.wait(PATIENCE_SECONDS)
        yield
        while not go_on.is_set():
            yield

    async def run_long() -> None:
        await inference.run(long_steps(), call_class=CallClass.LONG, cost=60.0)

    busy = client.portal.start_task_soon(run_long)
    assert entered.wait(PATIENCE_SECONDS)
    first.set()
    for _ in range(20):
        recommend(client)
    assert not busy.done()
    go_on.set()
    busy.result(PATIENCE_SECONDS)


def test_pauses_do_not_change_a_sweep(client: Client) -> None:
    predictor = client.app.state.context.model_manager.require_current()
    alone = client.post("/v1/attention", SWEEP)
    assert alone.status_code == 200
    assert len(alone.json()["instants"]) == len(INSTANTS)
    times = [instant * 1_000_000 for instant in INSTANTS]
    history = tuple(Event(f"i{hour % 20}", instant) for hour, instant in enumerate(times))
    query = Query(history, history[-1].at)
    steps = predictor.sweep_in_steps(query, times, Constraints(n=20))
    for _ in range(7):
        next(steps)
        complete(predictor.sweep_in_steps(query, times[:3], Constraints(n=5)))
    assert complete(steps) == predictor.sweep(query, times, Constraints(n=20))


def test_classes_and_costs_of_calls_are_measured(client: Client) -> None:
    recommend(client)
    assert client.metric("kairos_inference_cost_ratio_count", **{"class": "short"}) == 1
    assert client.metric("kairos_inference_seconds_total", **{"class": "short"}) > 0
    client.post("/v1/attention", SWEEP)
    eventually(lambda: client.metric("kairos_inference_cost_ratio_count", **{"class": "long"}) == 1)
