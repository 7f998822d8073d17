"""Overviews are read one at a time."""

import asyncio
from contextlib import suppress

import pytest

from app.errors import OverloadedError
from app.inference.requester import Requester, requester
from app.overview_gate import OverviewGate


def test_overviews_are_read_one_after_the_other() -> None:
    async def scenario() -> None:
        gate, inside, order = OverviewGate(patience_seconds=30.0), 0, []

        async def read(number: int) -> None:
            nonlocal inside
            async with gate.take_turn():
                inside += 1
                assert inside == 1
                await asyncio.sleep(0)
                order.append(number)
                inside -= 1

        await asyncio.gather(*(read(number) for number in range(5)))
        assert order == [0, 1, 2, 3, 4]

    asyncio.run(scenario())


def test_an_overview_beyond_the_queue_is_refused() -> None:
    async def scenario() -> None:
        gate = OverviewGate(queue=1, patience_seconds=30.0)
        async with gate.take_turn():
            waiting = asyncio.create_task(gate.take_turn().__aenter__())
            await asyncio.sleep(0)
            with pytest.raises(OverloadedError, match="at most 1 overviews may wait"):
                await gate.take_turn().__aenter__()
        await waiting

    asyncio.run(scenario())


def test_one_caller_leaves_places_for_others() -> None:
    async def scenario() -> None:
        gate = OverviewGate(share=1, patience_seconds=30.0)
        async with gate.take_turn():
            waiting = asyncio.create_task(gate.take_turn().__aenter__())
            await asyncio.sleep(0)
            with pytest.raises(OverloadedError, match="of one caller may wait"):
                await gate.take_turn().__aenter__()
            requester.set(Requester(caller="another"))
            other = asyncio.create_task(gate.take_turn().__aenter__())
            await asyncio.sleep(0)
            assert not other.done()
            other.cancel()
        await waiting

    asyncio.run(scenario())


def test_an_overview_waits_for_a_limited_time() -> None:
    async def scenario() -> None:
        gate = OverviewGate(patience_seconds=0.01)
        async with gate.take_turn():
            with pytest.raises(OverloadedError, match=r"may wait 0\.01 seconds") as refusal:
                await gate.take_turn().__aenter__()
        assert refusal.value.shed_reason == "overviews"

    asyncio.run(scenario())


@pytest.mark.parametrize("is_waiting", [False, True])
def test_an_overview_that_ends_early_gives_up_its_turn(is_waiting: bool) -> None:
    async def scenario() -> None:
        gate = OverviewGate(patience_seconds=30.0)

        async def read() -> None:
            async with gate.take_turn():
                await asyncio.sleep(30)

        first, second = asyncio.create_task(read()), asyncio.create_task(read())
        await asyncio.sleep(0)
        for task in (second, first) if is_waiting else (first, second):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        async with asyncio.timeout(30), gate.take_turn():
            pass

    asyncio.run(scenario())
