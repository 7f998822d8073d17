"""One check for every probe that waits for it."""

import asyncio

import pytest

from app.db.database import SharedCheck
from app.errors import OverloadedError


class Check:
    """A check that ends when a test lets it."""

    def __init__(self, error: Exception | None = None) -> None:
        self.runs = 0
        self.released = asyncio.Event()
        self._error = error

    async def __call__(self) -> None:
        self.runs += 1
        await self.released.wait()
        if self._error is not None:
            raise self._error


def test_probes_at_the_same_time_share_one_check() -> None:
    async def probe() -> int:
        check = Check()
        shared = SharedCheck(check)
        probes = [asyncio.create_task(shared.run()) for _ in range(100)]
        await asyncio.sleep(0)
        check.released.set()
        await asyncio.gather(*probes)
        assert check.runs == 1
        await shared.run()
        return check.runs

    assert asyncio.run(probe()) == 2


def test_every_probe_gets_the_failure() -> None:
    async def probe() -> list[object]:
        check = Check(OverloadedError("requests", 1, "full"))
        check.released.set()
        shared = SharedCheck(check)
        return await asyncio.gather(*(shared.run() for _ in range(3)), return_exceptions=True)

    assert [type(result) for result in asyncio.run(probe())] == 3 * [OverloadedError]


def test_a_probe_that_is_given_up_ends_no_other() -> None:
    async def probe() -> None:
        check = Check()
        shared = SharedCheck(check)
        first, second = (asyncio.create_task(shared.run()) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        check.released.set()
        await second

    asyncio.run(probe())
