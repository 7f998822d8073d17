"""Refusals for lack of capacity cost little, however fast they are repeated."""

import asyncio
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.responses import PlainTextResponse
from starlette.types import Message, Receive, Scope, Send

from app.http.middleware import load_shedding
from app.http.middleware.load_shedding import LoadSheddingMiddleware, RefusalPace
from app.observability.metrics import Metrics
from tests.app.clock import Clock


@given(st.lists(st.floats(0, 3), min_size=1, max_size=400))
def test_refusals_of_a_caller_are_spaced(gaps: list[float]) -> None:
    clock, due = Clock(100.0), []
    pace = RefusalPace(clock=clock)
    for gap in gaps:
        clock.seconds += gap / 100
        pause = pace.take_pause("a")
        assert 0 <= pause <= 1
        if pause < 1:
            due.append(clock.seconds + pause)
    assert all(after - before > 0.0099 for before, after in pairwise(due))


def test_a_caller_does_not_wait_for_the_refusals_of_another() -> None:
    pace = RefusalPace(clock=Clock(100.0))
    assert [pace.take_pause("a") for _ in range(3)] == pytest.approx([0.0, 0.01, 0.02])
    assert pace.take_pause("b") == 0


def test_refusals_are_forgotten_after_a_while() -> None:
    clock = Clock(100.0)
    pace = RefusalPace(clock=clock)
    for _ in range(1000):
        pace.take_pause("a")
    clock.seconds += 1.02
    assert pace.take_pause("a") == 0


def test_the_callers_that_are_remembered_are_bounded() -> None:
    pace = RefusalPace(clock=Clock(100.0))
    for number in range(5000):
        pace.take_pause(str(number))
    assert len(pace._next) == 1024


@pytest.mark.parametrize(
    ("status", "is_paced"), [(200, False), (404, False), (429, True), (503, True)]
)
def test_only_refusals_wait(status: int, is_paced: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    async def respond(scope: Scope, receive: Receive, send: Send) -> None:
        await PlainTextResponse("answer", status)(scope, receive, send)

    async def send(message: Message) -> None:
        pass

    async def request(path: str) -> None:
        scope = {"type": "http", "method": "GET", "path": path, "headers": [], "client": None}
        await shedding(scope, receive, send)

    async def receive() -> Message:
        raise AssertionError("nothing reads a body here")

    monkeypatch.setattr(load_shedding.asyncio, "sleep", sleep)
    shedding = LoadSheddingMiddleware(respond, {("GET", "/limited"): lambda _: None}, Metrics())
    for _ in range(20):
        asyncio.run(request("/limited"))
    paced = sum(0 < pause <= 1 for pause in pauses)
    for _ in range(20):
        asyncio.run(request("/other"))
    assert (paced > 0) == is_paced
    assert len(pauses) == paced
