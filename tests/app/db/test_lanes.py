"""Slow statements end at their deadline, and delay neither writes nor probes."""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from threading import Semaphore

import pytest
from sqlalchemy import text
from sqlalchemy.orm import Session

from app.db.database import Database
from app.errors import DatabaseUnavailableError, OverloadedError
from app.keys.issuing import create_key
from app.settings import Settings
from tests.app.client import Client, running
from tests.processes import eventually

# Longer than any test waits.
SLOW = {
    "sqlite": "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 1e13) "
    "SELECT max(x) FROM n",
    "postgresql": "SELECT pg_sleep(600)",
}
EVENT = {"user_id": "u", "item_id": "i1", "action": "view", "timestamp": 1_700_000_000}


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest) -> str:
    """A migrated database of each kind."""
    return str(request.getfixturevalue(f"migrated_{request.param}_url"))


def read_seven(session: Session) -> object:
    return session.scalar(text("SELECT 7"))


def run_slowly(session: Session) -> None:
    session.execute(text(SLOW[session.get_bind().dialect.name]))


class SlowReads:
    """Slow reads that are under way in a service."""

    def __init__(self, client: Client, number: int) -> None:
        self._started = Semaphore(0)
        self._database = client.app.state.context.database
        self._calls: list[Future[object]] = [
            client.portal.start_task_soon(self._database.read, self._read) for _ in range(number)
        ]

    def _read(self, session: Session) -> None:
        self._started.release()
        run_slowly(session)

    def wait_until_started(self, number: int) -> None:
        for _ in range(number):
            assert self._started.acquire(timeout=30)

    def cancel(self) -> None:
        for call in self._calls:
            call.cancel()


@pytest.fixture
def client(settings: Settings, url: str) -> Iterator[Client]:
    # The timeout is beyond the test: what ends, ends for another reason.
    update = {"database_url": url, "database_timeout_seconds": 600, "database_threads": 8}
    with running(settings.model_copy(update=update)) as client:
        yield client


@pytest.mark.slow
def test_slow_reads_delay_neither_writes_nor_probes(client: Client, url: str) -> None:
    reads = SlowReads(client, 12)
    reads.wait_until_started(8)
    for number in range(3):
        event = EVENT | {"event_id": f"e{number}"}
        assert client.post("/v1/events", {"events": [event]}).status_code == 200
        assert client.get("/health/ready").json()["status"] == "ready"
    # A key that was created meanwhile is known: requests without one are refused.
    create_key(url, "shop", "read")
    eventually(lambda: client.get("/v1/caller").status_code == 401)
    eventually(lambda: client.metric("kairos_database_in_progress", lane="reads") == 12)
    reads.cancel()


def test_a_cancelled_read_frees_its_thread(client: Client) -> None:
    reads = SlowReads(client, 8)
    reads.wait_until_started(8)
    reads.cancel()
    context = client.app.state.context
    assert client.portal.call(context.database.read, read_seven) == 7


@pytest.mark.parametrize("kind", ["read", "write"])
def test_a_statement_ends_at_its_deadline(client: Client, url: str, kind: str) -> None:
    database = Database(url, threads=1, queue=4, timeout_seconds=0.5)
    run: Callable[..., object] = getattr(database, kind)
    try:
        with pytest.raises(DatabaseUnavailableError, match=r"within 0\.5 seconds"):
            client.portal.call(run, run_slowly)
        # There is one thread for each kind: it is free again.
        eventually(lambda: _answers(client, run))
    finally:
        database.close()


def _answers(client: Client, run: Callable[..., object]) -> bool:
    try:
        return client.portal.call(run, read_seven) == 7
    except DatabaseUnavailableError:
        return False


def test_work_outside_the_event_loop_has_a_deadline_too(url: str) -> None:
    database = Database(url, threads=1, queue=0, timeout_seconds=0.2)
    with pytest.raises(DatabaseUnavailableError):
        database.read_blocking(run_slowly)
    with pytest.raises(DatabaseUnavailableError):
        database.write_blocking(run_slowly)
    database.close()


def test_work_that_took_too_long_is_not_committed(client: Client, url: str) -> None:
    database = Database(url, threads=1, queue=0, timeout_seconds=0.2)
    may_go_on = Semaphore(0)

    def write(session: Session) -> None:
        session.execute(text("INSERT INTO erased_users (digest, erased_at) VALUES ('late', 0)"))
        assert may_go_on.acquire(timeout=30)

    try:
        with pytest.raises(DatabaseUnavailableError):
            client.portal.call(database.write, write)
    finally:
        may_go_on.release()
        database.close()
    patient = Database(url, threads=1, queue=0, timeout_seconds=60)
    found = patient.read_blocking(
        lambda session: session.scalar(text("SELECT count(*) FROM erased_users"))
    )
    patient.close()
    assert found == 0


def test_each_lane_sheds_by_itself(url: str) -> None:
    async def scenario() -> None:
        database = Database(url, threads=1, queue=1, timeout_seconds=600)
        reads = [asyncio.create_task(database.read(run_slowly)) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(OverloadedError) as shed:
            await database.read(read_seven)
        assert shed.value.shed_reason == "database_reads"
        assert await database.write(read_seven) == 7
        assert await database.read(read_seven, lane="control") == 7
        for read in reads:
            read.cancel()
        await asyncio.wait(reads)
        await asyncio.to_thread(database.close)

    asyncio.run(scenario())
