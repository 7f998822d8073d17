"""The SQLite file is moved away, replaced or damaged while the service runs."""

import os
import shutil
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Event
from types import SimpleNamespace

import pytest
from sqlalchemy import text
from sqlalchemy.orm import Session

from app.db.database import Database
from app.db.sqlite_file import FileIdentity, SqliteFile
from app.errors import DatabaseUnavailableError
from app.settings import Settings
from tests.app.client import REQUEST, Client, running
from tests.processes import eventually

EVENT = {"user_id": "u", "item_id": "i1", "action": "view", "timestamp": 1_700_000_000}
PARTS = ("", "-wal", "-shm")

pytestmark = pytest.mark.usefixtures("brief_shutdown")


@pytest.fixture
def file(settings: Settings) -> Path:
    return Path(settings.database_url.removeprefix("sqlite:///"))


def send(client: Client, event_id: str) -> int:
    return client.post("/v1/events", {"events": [EVENT | {"event_id": event_id}]}).status_code


def read_ids(file: Path) -> set[str]:
    connection = sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)
    ids = {event_id for (event_id,) in connection.execute("SELECT event_id FROM events")}
    connection.close()
    return ids


def move(file: Path, target: Path) -> None:
    for part in PARTS:
        source = file.with_name(file.name + part)
        if source.exists():
            source.rename(target.with_name(target.name + part))


def move_back(file: Path, target: Path) -> None:
    """Move the parts back, the database last: opened without its log it would begin another one."""
    for part in reversed(PARTS):
        source = file.with_name(file.name + part)
        if source.exists():
            source.rename(target.with_name(target.name + part))


def is_ready(client: Client) -> bool:
    return client.get("/health/ready").status_code == 200


def test_no_event_is_accepted_into_a_file_that_was_moved(
    client: Client, file: Path, tmp_path: Path
) -> None:
    assert send(client, "before") == 200
    move(file, tmp_path / "moved.db")
    response = client.post("/v1/events", {"events": [EVENT | {"event_id": "meanwhile"}]})
    assert (response.status_code, response.json()["code"]) == (503, "database_unavailable")
    assert int(response.headers["Retry-After"]) >= 1
    ready = client.get("/health/ready")
    assert ready.status_code == 503
    assert "not" in ready.json()["writes"]
    assert client.post("/v1/recommendations", REQUEST).status_code == 200
    assert not file.exists(), "an empty database was created"
    move_back(tmp_path / "moved.db", file)
    assert send(client, "after") == 200
    assert is_ready(client)
    assert read_ids(file) == {"before", "after"}


def test_a_deleted_file_is_missed(client: Client, file: Path) -> None:
    assert send(client, "before") == 200
    for part in PARTS:
        file.with_name(file.name + part).unlink(missing_ok=True)
    assert send(client, "lost") == 503
    assert not is_ready(client)


def test_another_file_in_its_place_is_opened(
    client: Client, file: Path, sqlite_template: Path, tmp_path: Path
) -> None:
    assert send(client, "old") == 200
    move(file, tmp_path / "moved.db")
    shutil.copyfile(sqlite_template, file)
    eventually(lambda: send(client, "new") == 200)
    eventually(lambda: is_ready(client))
    assert client.get("/v1/users/u").json()["events"][0]["event_id"] == "new"
    assert read_ids(file) == {"new"}


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_an_unfinished_copy_is_left_alone(
    client: Client, file: Path, sqlite_template: Path, tmp_path: Path, share: float
) -> None:
    assert send(client, "old") == 200
    move(file, tmp_path / "moved.db")
    content = sqlite_template.read_bytes()
    copied = int(share * len(content))
    with file.open("wb", buffering=0) as copy:
        copy.write(content[:copied])
        refused = client.post("/v1/events", {"events": [EVENT | {"event_id": "meanwhile"}]})
        assert (refused.status_code, refused.json()["code"]) == (503, "database_unavailable")
        copy.write(content[copied:])
    eventually(lambda: send(client, "new") == 200)
    assert read_ids(file) == {"new"}


def test_events_survive_the_loss_of_the_log_file(client: Client, file: Path) -> None:
    """They are in the file that the path names, also those from before."""
    assert send(client, "before") == 200
    file.with_name(f"{file.name}-wal").unlink()
    eventually(lambda: send(client, "after") == 200)
    assert read_ids(file) == {"before", "after"}


def test_a_service_on_a_full_disk_is_not_ready(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = os.statvfs("/")
    fields = {name: getattr(found, name) for name in ("f_frsize", "f_bfree", "f_bavail")}
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(**fields, f_files=0))
    assert client.get("/health/ready").status_code == 200
    fields["f_bfree"] = fields["f_bavail"] = 1
    response = client.get("/health/ready")
    assert response.status_code == 503
    assert response.json()["writes"].startswith("the disk of the database must have")
    assert client.post("/v1/recommendations", REQUEST).status_code == 200


def test_writes_go_on_after_the_loss_of_a_log_in_use(migrated_sqlite_url: str) -> None:
    """Readers that always overlap must not keep SQLite's index of the deleted log alive."""
    database = Database(migrated_sqlite_url, threads=4, queue=4)
    log = Path(f"{migrated_sqlite_url.removeprefix('sqlite:///')}-wal")
    has_ended = Event()

    def read() -> None:
        while not has_ended.is_set():
            with suppress(DatabaseUnavailableError):
                database.read_blocking(lambda session: session.scalar(text("SELECT 1 FROM events")))

    def write(digest: str) -> bool:
        insert = text("INSERT INTO erased_users (digest, erased_at) VALUES (:digest, 0)")
        try:
            database.write_blocking(lambda session: session.execute(insert, {"digest": digest}))
        except DatabaseUnavailableError:
            return False
        return True

    assert write("before")
    with ThreadPoolExecutor(4) as readers:
        reading = [readers.submit(read) for _ in range(4)]
        log.unlink()
        try:
            eventually(lambda: write("after"), within_seconds=30)
        finally:
            has_ended.set()
    assert [each.result() for each in reading] == [None] * 4
    database.close()


def test_a_commit_into_a_file_that_is_moved_is_not_acknowledged(
    migrated_sqlite_url: str, tmp_path: Path
) -> None:
    file = Path(migrated_sqlite_url.removeprefix("sqlite:///"))
    database = Database(migrated_sqlite_url, threads=1, queue=0)

    def write(session: Session) -> None:
        session.execute(text("INSERT INTO erased_users (digest, erased_at) VALUES ('x', 0)"))
        file.rename(tmp_path / "moved.db")

    with pytest.raises(DatabaseUnavailableError, match="the file of the database must"):
        database.write_blocking(write)
    database.close()


@pytest.fixture(params=["no database", "a damaged page", "a damaged header"])
def damaged(request: pytest.FixtureRequest, settings: Settings, file: Path) -> Settings:
    content = file.read_bytes()
    if request.param == "no database":
        file.write_bytes(b"no database at all" * 1000)
    elif request.param == "a damaged page":
        file.write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))
    else:
        file.write_bytes(content[:100] + b"\xff" * 3996 + content[4096:])
    return settings.model_copy(update={"open_to_loopback": True})


def test_a_service_starts_beside_a_damaged_file(
    damaged: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    with running(damaged) as client:
        assert client.post("/v1/recommendations", REQUEST).status_code == 200
        assert client.get("/health/live").status_code == 200
        ready = client.get("/health/ready")
        assert ready.status_code == 503
        response = client.post("/v1/events", {"events": [EVENT]})
        assert response.status_code == 503
        assert "kairos restore" in response.json()["detail"]
    assert "Traceback" not in capsys.readouterr().out


def test_the_first_write_to_a_file_without_a_log_runs_once(migrated_sqlite_url: str) -> None:
    """A restored backup is one file, in another journal mode."""
    with sqlite3.connect(migrated_sqlite_url.removeprefix("sqlite:///")) as connection:
        connection.execute("PRAGMA journal_mode=DELETE")
    connection.close()
    database, runs = Database(migrated_sqlite_url, threads=1, queue=0), []

    def write(session: Session) -> None:
        runs.append(session.execute(text("UPDATE erased_users SET erased_at = 0")))

    database.write_blocking(write)
    assert len(runs) == 1
    database.close()


def test_a_deleted_log_is_saved_before_another_is_opened(migrated_sqlite_url: str) -> None:
    """The first reader opens its connection after the log was deleted, and before the writer."""
    database = Database(migrated_sqlite_url, threads=1, queue=0)
    file = Path(migrated_sqlite_url.removeprefix("sqlite:///"))

    def count(session: Session) -> int:
        return session.scalar(text("SELECT COUNT(*) FROM erased_users")) or 0

    def write(session: Session) -> None:
        session.execute(text("INSERT INTO erased_users (digest, erased_at) VALUES ('x', 0)"))

    database.write_blocking(write)
    file.with_name(f"{file.name}-wal").unlink()
    database.read_blocking(lambda session: session.scalar(text("SELECT 1 FROM events")))
    assert database.write_blocking(count) == 1
    database.close()


@pytest.mark.parametrize("error", [PermissionError(13, "denied"), OSError(5, "no answer")])
def test_a_file_that_cannot_be_reached_is_an_outage(
    client: Client, file: Path, monkeypatch: pytest.MonkeyPatch, error: OSError
) -> None:
    def refuse(_: Path) -> bool:
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(Path, "exists", refuse)
        patched.setattr(SqliteFile, "identify", lambda _: FileIdentity(None, None))
        refused = [client.get("/v1/users/u"), client.get("/health/ready")]
        refused.append(client.post("/v1/events", {"events": [EVENT | {"event_id": "a"}]}))
        assert [answer.status_code for answer in refused] == [503] * 3
    eventually(lambda: send(client, "b") == 200)
    assert read_ids(file) == {"b"}
