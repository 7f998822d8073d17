"""Bounded pools of threads."""

import asyncio
import threading
import time

import pytest

from app.errors import OverloadedError
from app.thread_pool import BoundedPool


class Barrier:
    """Work that blocks until `open` is set."""

    def __init__(self) -> None:
        self.entered = threading.Semaphore(0)
        self.open = threading.Event()

    def pass_through(self) -> str:
        self.entered.release()
        assert self.open.wait(10)
        return threading.current_thread().name


def test_work_runs_on_a_named_thread() -> None:
    async def scenario() -> str:
        pool = BoundedPool("inference", threads=1, queue=0)
        name = await pool.run(lambda: threading.current_thread().name)
        pool.close()
        return name

    assert asyncio.run(scenario()).startswith("kairos-inference")


def test_an_exception_reaches_the_caller_and_frees_the_thread() -> None:
    async def scenario() -> int:
        pool = BoundedPool("inference", threads=1, queue=0)
        for _ in range(5):
            with pytest.raises(ZeroDivisionError):
                await pool.run(lambda: 1 // 0)
        return await pool.run(lambda: 7)

    assert asyncio.run(scenario()) == 7


def test_the_call_beyond_the_queue_is_refused_at_once() -> None:
    async def scenario() -> None:
        barrier = Barrier()
        pool = BoundedPool("inference", threads=2, queue=3)
        waiting = [asyncio.create_task(pool.run(barrier.pass_through)) for _ in range(5)]
        await asyncio.sleep(0)
        began = time.perf_counter()
        with pytest.raises(OverloadedError, match="at most 3 calls may wait for the inference"):
            await pool.run(barrier.pass_through)
        assert time.perf_counter() - began < 0.5
        for _ in range(2):
            await asyncio.to_thread(barrier.entered.acquire, timeout=10)
        barrier.open.set()
        assert len(set(await asyncio.gather(*waiting))) == 2
        assert await pool.run(barrier.pass_through)
        pool.close()

    asyncio.run(scenario())


def test_a_cancelled_waiting_call_frees_its_slot() -> None:
    async def scenario() -> None:
        barrier = Barrier()
        pool = BoundedPool("inference", threads=1, queue=1)
        busy = asyncio.create_task(pool.run(barrier.pass_through))
        queued = asyncio.create_task(pool.run(barrier.pass_through))
        await asyncio.to_thread(barrier.entered.acquire, timeout=10)
        queued.cancel()
        await asyncio.sleep(0)
        replacement = asyncio.create_task(pool.run(barrier.pass_through))
        await asyncio.sleep(0)
        barrier.open.set()
        assert await busy == await replacement
        pool.close()

    asyncio.run(scenario())


def test_a_cancelled_running_call_keeps_its_thread() -> None:
    async def scenario() -> None:
        barrier = Barrier()
        pool = BoundedPool("inference", threads=1, queue=0)
        busy = asyncio.create_task(pool.run(barrier.pass_through))
        await asyncio.to_thread(barrier.entered.acquire, timeout=10)
        busy.cancel()
        await asyncio.sleep(0)
        with pytest.raises(OverloadedError):
            await pool.run(barrier.pass_through)
        barrier.open.set()
        pool.close()

    asyncio.run(scenario())


@pytest.mark.slow
def test_a_burst_may_wait_but_a_sustained_queue_is_short() -> None:
    async def scenario() -> None:
        pool = BoundedPool("inference", threads=1, queue=50, patience_seconds=0.1)
        for _ in range(60):
            await pool.run(lambda: time.sleep(0.02))  # the pool measures how long a call takes
        barrier = Barrier()
        waiting = [asyncio.create_task(pool.run(barrier.pass_through)) for _ in range(20)]
        await asyncio.sleep(0)
        pool.require_capacity()
        await asyncio.sleep(0.4)
        assert pool.stalled_seconds > 0.2
        with pytest.raises(OverloadedError, match=r"at most [1-5] calls may wait"):
            pool.require_capacity()
        barrier.open.set()
        await asyncio.gather(*waiting)
        assert pool.stalled_seconds == 0
        pool.require_capacity()
        pool.close()

    asyncio.run(scenario())


def test_slow_calls_keep_one_waiting_call_per_thread() -> None:
    async def scenario() -> None:
        pool = BoundedPool("inference", threads=1, queue=50, patience_seconds=0.001)
        await pool.run(lambda: time.sleep(0.1))
        barrier = Barrier()
        waiting = [asyncio.create_task(pool.run(barrier.pass_through)) for _ in range(2)]
        await asyncio.sleep(0.4)
        with pytest.raises(OverloadedError, match="at most 1 calls may wait"):
            pool.require_capacity()
        barrier.open.set()
        await asyncio.gather(*waiting)
        pool.close()

    asyncio.run(scenario())


def test_a_hanging_thread_is_abandoned_on_close() -> None:
    async def scenario() -> None:
        barrier = Barrier()
        pool = BoundedPool("database", threads=1, queue=1)
        hanging = asyncio.create_task(pool.run(barrier.pass_through))
        queued = asyncio.create_task(pool.run(barrier.pass_through))
        await asyncio.to_thread(barrier.entered.acquire, timeout=10)
        began = time.perf_counter()
        await asyncio.to_thread(pool.close, within_seconds=0.1)
        assert time.perf_counter() - began < 5
        with pytest.raises(asyncio.CancelledError):
            await queued
        barrier.open.set()
        assert await hanging

    asyncio.run(scenario())
