"""The writer of impressions: a batch at a time, however fast requests arrive."""

from collections.abc import Sequence

import pytest

from app.context import AppContext
from app.recommendations.impression_writer import write_impressions
from app.recommendations.repository import ImpressionRepository
from app.serving.impressions import Impression
from tests.app.client import Client

MOST_WRITES = 10


def build(number: int) -> Impression:
    return Impression(f"r{number}", None, "v1", 0, None, ("i1",))


def test_what_arrives_during_a_write_waits_for_the_next(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    context: AppContext = client.app.state.context
    written: list[int] = []

    def add(_: ImpressionRepository, impressions: Sequence[Impression]) -> tuple[str, ...]:
        written.append(len(impressions))
        if len(written) < MOST_WRITES:
            # Another request is answered while this transaction runs.
            context.impressions.put(build(100 + len(written)))
        return ()

    monkeypatch.setattr(ImpressionRepository, "add", add)

    async def write() -> list[int]:
        for number in range(3):
            context.impressions.put(build(number))
        await write_impressions(context)
        return list(written)

    # The service's own writer may have its turn meanwhile, at most once.
    assert client.portal.call(write)[:2] in ([3], [3, 1])
    assert len(written) < MOST_WRITES
