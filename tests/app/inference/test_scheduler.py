"""Calls on the inference threads: turns, admission and cancellation."""

import asyncio
import threading
import time
from collections.abc import Coroutine
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

import pytest

from app.errors import OverloadedError, OverShareError
from app.inference.fair_queue import CallClass
from app.inference.scheduler import InferenceScheduler
from app.observability.metrics import Metrics
from model.inference.steps import Steps, run_at_once

LONG, SHORT = CallClass.LONG, CallClass.SHORT
CHEAP = 0.001
"""Estimated seconds of a call that may run on the event loop."""


def build(
    *, threads: int = 1, queue: int = 40, patience: float = 60.0, long_patience: float = 60.0
) -> Any:
    return InferenceScheduler(
        Metrics(),
        threads=threads,
        queue=queue,
        patience_seconds=patience,
        long_patience_seconds=long_patience,
    )


class Stepper:
    """Steps that each wait for a permission, and record their names."""

    def __init__(self) -> None:
        self.record: list[str] = []
        self.entered = threading.Semaphore(0)
        self.permitted = threading.Semaphore(0)
        self.closed: list[str] = []

    def steps(self, name: str, number: int) -> Steps[str]:
        try:
            for _ in range(number):
                self.record.append(name)
                self.entered.release()
                assert self.permitted.acquire(timeout=30)
                yield
            return name
        except GeneratorExit:
            self.closed.append(name)
            raise

    async def wait_until_entered(self) -> None:
        assert await asyncio.to_thread(self.entered.acquire, timeout=30)

    def permit(self, steps: int = 1000) -> None:
        for _ in range(steps):
            self.permitted.release()


def submit(running: Coroutine[Any, Any, tuple[str, float]]) -> "asyncio.Task[tuple[str, float]]":
    return asyncio.create_task(running)


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(scenario)


def test_a_call_returns_its_result_and_its_seconds() -> None:
    async def scenario() -> None:
        scheduler, stepper = build(), Stepper()
        stepper.permit()
        result, seconds = await scheduler.run(stepper.steps("x", 3))
        assert (result, stepper.record) == ("x", ["x"] * 3)
        assert seconds >= 0
        assert not scheduler.is_busy
        scheduler.close()

    run(scenario())


def test_an_exception_reaches_the_caller_and_frees_the_thread() -> None:
    async def scenario() -> None:
        scheduler = build(queue=0)
        for _ in range(5):
            with pytest.raises(ZeroDivisionError):
                await scheduler.call(lambda: 1 // 0)
        assert await scheduler.call(lambda: 7) == 7
        scheduler.close()

    run(scenario())


def test_a_short_call_runs_between_the_steps_of_a_long_one() -> None:
    async def scenario() -> None:
        scheduler, stepper = build(), Stepper()
        long = submit(scheduler.run(stepper.steps("long", 50), call_class=LONG, cost=9.0))
        await stepper.wait_until_entered()
        short = submit(scheduler.run(stepper.steps("short", 1), cost=0.001, turn_seconds=1.0))
        await asyncio.sleep(0.01)  # longer than a turn of the long one
        stepper.permit()
        await short
        assert stepper.record.index("short") == 1
        await long
        scheduler.close()

    run(scenario())


def test_a_short_call_that_takes_long_lets_others_go_first() -> None:
    async def scenario() -> None:
        scheduler, stepper, others_are_done = build(), Stepper(), threading.Event()

        def run_until_others_are_done() -> Steps[str]:
            while not others_are_done.is_set():
                yield
            return "liar"

        liar = submit(scheduler.run(run_until_others_are_done(), cost=0.001, turn_seconds=0.005))
        stepper.permit()
        for _ in range(3):
            await scheduler.run(stepper.steps("short", 1), cost=0.001, turn_seconds=1.0)
        others_are_done.set()
        assert (await liar)[0] == "liar"
        scheduler.close()

    run(scenario())


def test_a_cancelled_long_call_runs_no_further_step() -> None:
    async def scenario() -> None:
        scheduler, stepper = build(), Stepper()
        long = submit(scheduler.run(stepper.steps("long", 50), call_class=LONG, cost=9.0))
        await stepper.wait_until_entered()
        long.cancel()
        with suppress(asyncio.CancelledError):
            await long
        assert scheduler.is_busy  # the thread is in the step
        next_call = asyncio.create_task(scheduler.call(lambda: [*stepper.closed]))
        await asyncio.sleep(0)  # it waits before the step ends
        stepper.permit()
        assert await next_call == ["long"]
        assert stepper.record == ["long"]
        scheduler.close()

    run(scenario())


def test_a_cancelled_waiting_call_frees_its_slot() -> None:
    async def scenario() -> None:
        scheduler, stepper = build(queue=1), Stepper()
        busy = submit(scheduler.run(stepper.steps("busy", 1)))
        queued = submit(scheduler.run(stepper.steps("queued", 1)))
        await stepper.wait_until_entered()
        with pytest.raises(OverloadedError):
            scheduler.require_capacity("another")
        queued.cancel()
        with suppress(asyncio.CancelledError):
            await queued
        replacement = submit(scheduler.run(stepper.steps("replacement", 1)))
        stepper.permit()
        await asyncio.gather(busy, replacement)
        assert stepper.record == ["busy", "replacement"]
        scheduler.close()

    run(scenario())


def test_the_call_beyond_the_queue_is_refused() -> None:
    async def scenario() -> None:
        scheduler, stepper = build(queue=3), Stepper()
        waiting = [submit(scheduler.run(stepper.steps("x", 1))) for _ in range(4)]
        await stepper.wait_until_entered()
        with pytest.raises(OverloadedError, match="at most 3 calls may wait for the inference"):
            await scheduler.call(lambda: None)
        stepper.permit()
        await asyncio.gather(*waiting)
        scheduler.close()

    run(scenario())


def test_long_calls_leave_places_to_short_ones() -> None:
    async def scenario() -> None:
        scheduler, stepper = build(queue=4, long_patience=60.0), Stepper()
        long = [
            submit(scheduler.run(stepper.steps("long", 2), caller="a", call_class=LONG, cost=1.0))
            for _ in range(3)
        ]
        await stepper.wait_until_entered()
        with pytest.raises(OverloadedError, match="at most 2 calls may wait"):
            scheduler.require_capacity("a", LONG, 1.0)
        short = submit(scheduler.run(stepper.steps("short", 1), cost=0.001, turn_seconds=1.0))
        await asyncio.sleep(0)
        stepper.permit()
        assert (await short)[0] == "short"
        await asyncio.gather(*long)
        scheduler.close()

    run(scenario())


def test_a_short_call_that_waits_for_a_processor_stays_short() -> None:
    async def scenario() -> None:
        scheduler, stepper = build(), Stepper()
        waiting = submit(scheduler.run(stepper.steps("waiting", 2), cost=0.05, turn_seconds=0.02))
        await stepper.wait_until_entered()
        long = submit(scheduler.run(stepper.steps("long", 1), call_class=LONG, cost=9.0))
        await asyncio.sleep(0.05)  # longer than the turn, without computing
        stepper.permit()
        await asyncio.gather(waiting, long)
        assert stepper.record == ["waiting", "waiting", "long"]
        scheduler.close()

    run(scenario())


def test_a_cheap_call_runs_on_the_event_loop() -> None:
    async def scenario() -> None:
        scheduler = build()
        thread, _ = await scheduler.run(run_at_once(threading.get_ident), cost=CHEAP)
        assert thread == threading.get_ident()
        thread = await scheduler.call(threading.get_ident)
        assert thread != threading.get_ident()
        work = run_at_once(threading.get_ident)
        thread, _ = await scheduler.run(work, cost=CHEAP, may_use_loop=False)
        assert thread != threading.get_ident()
        scheduler.close()

    run(scenario())


def test_with_several_threads_cheap_calls_run_on_them() -> None:
    async def scenario() -> None:
        scheduler = build(threads=2)
        thread, _ = await scheduler.run(run_at_once(threading.get_ident), cost=CHEAP)
        assert thread != threading.get_ident()
        scheduler.close()

    run(scenario())


def test_a_cheap_call_that_takes_long_continues_on_a_thread() -> None:
    async def scenario() -> None:
        scheduler, found = build(), list[int]()

        def steps() -> Steps[None]:
            for _ in range(2):
                found.append(threading.get_ident())
                ends_at = time.thread_time() + 0.05
                while time.thread_time() < ends_at:
                    pass
                yield

        await scheduler.run(steps(), cost=CHEAP, turn_seconds=10.0)
        assert found[0] == threading.get_ident()
        assert found[1] != threading.get_ident()
        scheduler.close()

    run(scenario())


def test_a_call_does_not_run_as_part_of_another_request() -> None:
    sender = ContextVar("sender", default="nobody")

    async def scenario() -> None:
        scheduler = build()

        async def send(name: str) -> str:
            sender.set(name)
            value, _ = await scheduler.run(run_at_once(sender.get), cost=CHEAP)
            return str(value)

        assert await asyncio.gather(send("a"), send("b")) == ["nobody", "nobody"]
        scheduler.close()

    run(scenario())


def test_while_a_thread_computes_a_cheap_call_waits_for_it() -> None:
    async def scenario() -> None:
        scheduler, stepper = build(), Stepper()
        long = submit(scheduler.run(stepper.steps("long", 2), call_class=LONG, cost=9.0))
        await stepper.wait_until_entered()
        cheap = submit(scheduler.run(stepper.steps("cheap", 1), cost=CHEAP))
        await asyncio.sleep(0.01)
        assert stepper.record == ["long"]
        stepper.permit()
        await asyncio.gather(long, cheap)
        scheduler.close()

    run(scenario())


def test_cheap_calls_that_arrive_together_share_the_event_loop() -> None:
    async def scenario() -> None:
        scheduler, stepper = build(), Stepper()
        stepper.permit()
        calls = [
            submit(scheduler.run(stepper.steps(caller, 1), caller=caller, cost=CHEAP))
            for caller in ("a", "a", "a", "b")
        ]
        calls.append(submit(scheduler.run(stepper.steps("long", 1), call_class=LONG, cost=9.0)))
        await asyncio.gather(*calls)
        assert stepper.record.index("b") < 2
        assert sorted(stepper.record) == ["a", "a", "a", "b", "long"]
        scheduler.close()

    run(scenario())


def test_the_event_loop_lets_its_connections_go_first() -> None:
    async def scenario() -> None:
        scheduler, order = build(), list[str]()

        def compute() -> None:
            order.append("call")
            time.sleep(0.02)

        calls = [submit(scheduler.run(run_at_once(compute), cost=CHEAP)) for _ in range(3)]
        await asyncio.sleep(0)
        for _ in range(3):
            await asyncio.sleep(0)
            order.append("connection")
        await asyncio.gather(*calls)
        assert order[:4] == ["call", "connection", "call", "connection"]
        scheduler.close()

    run(scenario())


def test_the_caller_that_fills_the_queue_gives_way_to_others() -> None:
    async def scenario() -> None:
        scheduler, stepper = build(queue=4), Stepper()
        flood = [submit(scheduler.run(stepper.steps("flood", 1), caller="a")) for _ in range(5)]
        await stepper.wait_until_entered()
        other = submit(scheduler.run(stepper.steps("other", 1), caller="b"))
        await asyncio.sleep(0)
        stepper.permit()
        assert (await other)[0] == "other"
        outcomes = await asyncio.gather(*flood, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes[:-1]] == [tuple] * 4
        assert isinstance(outcomes[-1], OverShareError)
        scheduler.close()

    run(scenario())


def test_long_work_is_admitted_by_its_estimated_wait() -> None:
    async def scenario() -> None:
        scheduler, stepper = build(long_patience=5.0), Stepper()
        running = [
            submit(scheduler.run(stepper.steps("sweep", 1), caller="a", call_class=LONG, cost=4.0))
            for _ in range(2)
        ]
        await stepper.wait_until_entered()
        with pytest.raises(OverloadedError, match=r"may wait 5 seconds .* would wait 8") as refused:
            scheduler.require_capacity("a", LONG, 4.0)
        assert refused.value.retry_after == 3
        scheduler.require_capacity("a", LONG, 0.5)
        scheduler.require_capacity("b", LONG, 4.0)
        scheduler.require_capacity("a", SHORT, 0.01)
        stepper.permit()
        await asyncio.gather(*running)
        scheduler.close()

    run(scenario())


def test_while_others_wait_a_caller_has_its_share_only() -> None:
    async def scenario() -> None:
        scheduler, stepper = build(long_patience=5.0), Stepper()
        running = []
        for caller in ("c", "b", "b", "a", "a"):
            running.append(
                submit(
                    scheduler.run(stepper.steps("x", 1), caller=caller, call_class=LONG, cost=2.0)
                )
            )
            if caller == "c":
                await stepper.wait_until_entered()
        await asyncio.sleep(0)
        with pytest.raises(OverShareError, match=r"0\.50 of the model and may wait 5 ") as refused:
            scheduler.require_capacity("a", LONG, 2.0)
        assert refused.value.retry_after == 3
        stepper.permit()
        await asyncio.gather(*running)
        scheduler.close()

    run(scenario())


def test_closing_ends_a_long_call_and_cancels_the_others() -> None:
    async def scenario() -> None:
        scheduler, stepper = build(), Stepper()
        long = submit(scheduler.run(stepper.steps("long", 50), call_class=LONG, cost=9.0))
        await stepper.wait_until_entered()
        waiting = submit(scheduler.run(stepper.steps("waiting", 1)))
        await asyncio.sleep(0.01)
        threading.Timer(0.1, stepper.permit).start()
        await asyncio.to_thread(scheduler.close)
        outcomes = await asyncio.gather(long, waiting, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [asyncio.CancelledError] * 2
        assert stepper.record == ["long"]

    run(scenario())


def test_closing_delivers_the_result_of_a_last_step() -> None:
    async def scenario() -> None:
        scheduler, stepper = build(), Stepper()

        def work() -> str:
            stepper.entered.release()
            assert stepper.permitted.acquire(timeout=30)
            return "complete"

        running = asyncio.create_task(scheduler.call(work))
        await stepper.wait_until_entered()
        waiting = submit(scheduler.run(stepper.steps("waiting", 1)))
        await asyncio.sleep(0.01)
        closing = asyncio.create_task(asyncio.to_thread(scheduler.close))
        # What waits is cancelled first.
        with suppress(asyncio.CancelledError):
            await waiting
        stepper.permit()
        await closing
        assert await running == "complete"

    run(scenario())


def test_steps_that_fail_when_they_are_cancelled_free_the_thread() -> None:
    async def scenario() -> None:
        scheduler, stepper = build(), Stepper()

        def fail() -> Steps[str]:
            try:
                yield from stepper.steps("cancelled", 3)
            except GeneratorExit:
                raise ValueError("failed at the end") from None
            return "complete"

        cancelled = submit(scheduler.run(fail(), call_class=LONG))
        await stepper.wait_until_entered()
        cancelled.cancel()
        with suppress(asyncio.CancelledError):
            await cancelled
        stepper.permit()
        assert await scheduler.call(lambda: "next") == "next"
        scheduler.close()

    run(scenario())
