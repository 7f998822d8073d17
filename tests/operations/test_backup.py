"""Backup and restore: acknowledged events are kept, and responses stay equal."""

import json
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import httpx
import polars as pl
import psycopg
import pytest
from sqlalchemy import text

from app.backups import copying
from app.backups.copying import take_backup
from app.backups.record import BackupError, BackupRecord
from app.db.database import Database
from app.db.engine import open_engine
from app.db.erasure_log import ErasureLog, open_erasure_log
from app.db.erasure_replay import Replay, replay_erasures
from app.db.erasures import DeletedSlice, ErasureRepository, compute_user_digest
from app.errors import DatabaseUnavailableError
from app.imports import import_events
from app.settings import Settings
from migrations.run import list_revisions, upgrade
from model.store.store import BundleStore
from tests.app import tiny_bundle
from tests.app.client import problem, running
from tests.processes import LOCAL_TOKEN, Server, eventually, processes
from training.data.sources import read_events

REQUEST = {
    "user_id": "known",
    "n": 5,
    "query_time": "2026-01-02T00:00:00Z",
    "explain": "attention",
}


def run_kairos(*arguments: str) -> str:
    done = subprocess.run(
        [str(Path(sys.executable).with_name("kairos")), *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def build_events(ids: Iterable[str]) -> list[dict[str, object]]:
    fields = {"user_id": "u", "item_id": "i1", "action": "view", "timestamp": 1767225600}
    return [{"event_id": event_id, **fields} for event_id in ids]


def resend(server: Server, ids: set[str]) -> Counter[str]:
    """Sends events again, and counts accepted ones and duplicates."""
    counts: Counter[str] = Counter()
    for first in range(0, len(ids), 1000):
        events = build_events(sorted(ids)[first : first + 1000])
        answer = server.http.post("/v1/events", json={"events": events}).json()
        counts.update(accepted=answer["accepted"], duplicates=answer["duplicates"])
    assert counts["accepted"] + counts["duplicates"] == len(ids)
    return counts


def restore_backup(backup: Path, url: str, store: Path) -> BackupRecord:
    """Restores with the log of erasures of the database."""
    log = open_erasure_log(url, backup.with_name("erasures"))
    return copying.restore_backup(backup, url, store, log)[0]


class Ingest:
    """Sends events continuously from a thread, and collects the acknowledged ids."""

    def __init__(self, server: Server) -> None:
        self._http = httpx.Client(base_url=server.url, timeout=30, auth=LOCAL_TOKEN)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._send)
        self.acknowledged: list[str] = []

    def __enter__(self) -> "Ingest":
        self._thread.start()
        eventually(lambda: len(self.acknowledged) >= 100)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(30)
        self._http.close()

    def _send(self) -> None:
        batch = 0
        while not self._stop.is_set():
            ids = [f"e{batch}-{number}" for number in range(20)]
            answer = self._http.post("/v1/events", json={"events": build_events(ids)})
            if answer.status_code == 200:
                self.acknowledged += ids
            batch += 1


@pytest.fixture
def other_database(request: pytest.FixtureRequest, database_url: str, tmp_path: Path) -> str:
    """An empty database of the same kind."""
    if database_url.startswith("sqlite"):
        return f"sqlite:///{tmp_path / 'elsewhere' / 'kairos.db'}"
    server = str(request.getfixturevalue("postgresql_server"))
    name = f"kairos_{uuid4().hex}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return server.replace("/postgres?", f"/{name}?")


@pytest.mark.slow
def test_a_backup_under_ingest_contains_acknowledged_events(
    bundle_store: Path, database_url: str, other_database: str, tmp_path: Path
) -> None:
    tiny_bundle.publish(bundle_store, seed=2, activate=False)
    backup, store = tmp_path / "backup", tmp_path / "elsewhere" / "bundles"
    history = [
        {
            "user_id": "known",
            "item_id": f"i{n}",
            "action": "view",
            "timestamp": tiny_bundle.FIRST_AT // 10**6 + n,
        }
        for n in range(5)
    ]
    with processes(tmp_path, bundle_store) as start:
        server = start(KAIROS_DATABASE_URL=database_url)
        assert server.http.post("/v1/events", json={"events": history}).status_code == 200
        assert (
            server.http.put(
                "/v1/items", json={"items": [{"item_id": "i1", "title": "One"}]}
            ).status_code
            == 200
        )
        before = server.http.post("/v1/recommendations", json=REQUEST).json()
        with Ingest(server) as ingest:
            acknowledged = {*ingest.acknowledged}
            run_kairos(
                "backup", str(backup), "--database", database_url, "--store", str(bundle_store)
            )
            acknowledged_later = len(ingest.acknowledged)
        assert acknowledged_later > len(acknowledged), "no event was ingested during the backup"
        server.process.kill()

        run_kairos("restore", str(backup), "--database", other_database, "--store", str(store))
        restored = start(KAIROS_DATABASE_URL=other_database, KAIROS_BUNDLE_STORE=str(store))
        after = restored.http.post("/v1/recommendations", json=REQUEST).json()
        assert resend(restored, acknowledged)["accepted"] == 0, "an acknowledged event is missing"
        # New events get numbers after those of the backup.
        answer = restored.http.post(
            "/v1/events",
            json={
                "events": [
                    {"user_id": "new", "item_id": "i1", "action": "view", "timestamp": 1767225600}
                ]
            },
        )
        assert answer.json()["accepted"] == 1
        replayed = restored.http.post("/v1/events", json={"events": history}).json()
        assert replayed["duplicates"] == len(history)

    assert BundleStore(store).list_versions() == BundleStore(bundle_store).list_versions()
    for response in (before, after):
        del response["recommendation_id"]
    assert after == before
    assert after["items"][0]["score"] is not None


@pytest.fixture
def backup(bundle_store: Path, sqlite_url: str, tmp_path: Path) -> Path:
    """A backup of a service without events."""
    upgrade(sqlite_url)
    take_backup(sqlite_url, bundle_store, tmp_path / "backup")
    return tmp_path / "backup"


def change_a_byte(backup: Path) -> None:
    weights = next((backup / "store").rglob("*.safetensors"))
    content = bytearray(weights.read_bytes())
    content[len(content) // 2] ^= 1
    weights.write_bytes(content)


def remove_a_file(backup: Path) -> None:
    next((backup / "store").rglob("*.safetensors")).unlink()


def add_a_file(backup: Path) -> None:
    (backup / "store" / "added").write_bytes(b"")


def remove_the_record(backup: Path) -> None:
    (backup / "backup.json").unlink()


def change_the_format(backup: Path) -> None:
    record = json.loads((backup / "backup.json").read_text())
    (backup / "backup.json").write_text(json.dumps(record | {"format": 2}))


@pytest.mark.parametrize(
    "fields",
    [
        {"rows": {}},
        {"rows": {"events": -1, "items": 0}},
        {"taken_at": 10**30},
        {"revision": "of a later version"},
        {"revision": list_revisions()[0]},
    ],
    ids=["no table", "fewer than no rows", "beyond the calendar", "unknown", "another"],
)
def test_a_record_with_impossible_values_is_refused(
    backup: Path, tmp_path: Path, fields: dict[str, object]
) -> None:
    record = json.loads((backup / "backup.json").read_text())
    (backup / "backup.json").write_text(json.dumps(record | fields))
    database, store = tmp_path / "new" / "kairos.db", tmp_path / "new" / "bundles"
    with pytest.raises(BackupError):
        restore_backup(backup, f"sqlite:///{database}", store)
    assert not database.exists()
    assert not store.exists()


@pytest.mark.parametrize(
    "damage", [change_a_byte, remove_a_file, add_a_file, remove_the_record, change_the_format]
)
def test_an_incomplete_backup_is_not_restored(
    backup: Path, tmp_path: Path, damage: "type[object]"
) -> None:
    damage(backup)  # type: ignore[call-arg]
    url, store = f"sqlite:///{tmp_path / 'new' / 'kairos.db'}", tmp_path / "new" / "bundles"
    with pytest.raises(BackupError):
        restore_backup(backup, url, store)
    assert not (tmp_path / "new").exists()


def test_a_restore_overwrites_neither_database_nor_store(
    database_url: str, other_database: str, bundle_store: Path, tmp_path: Path
) -> None:
    upgrade(database_url)
    events = pl.DataFrame(
        {
            "user_id": ["u"],
            "item_id": ["i1"],
            "action": ["view"],
            "timestamp": [1_767_225_600_000_000],
            "value": [None],
        }
    )
    import_events(
        database_url, events.cast({"timestamp": pl.Datetime("us", "UTC"), "value": pl.Float64})
    )
    backup = tmp_path / "backup"
    assert take_backup(database_url, bundle_store, backup).rows["events"] == 1
    with pytest.raises(BackupError, match="is not empty"):
        restore_backup(backup, other_database, bundle_store)
    with pytest.raises(BackupError, match="restored into"):
        restore_backup(backup, database_url, tmp_path / "new")
    assert not (tmp_path / "new").exists()
    assert restore_backup(backup, other_database, tmp_path / "new").rows["events"] == 1


def test_a_failed_backup_overwrites_and_leaves_nothing(
    backup: Path, sqlite_url: str, bundle_store: Path, tmp_path: Path
) -> None:
    with pytest.raises(BackupError, match="exists"):
        take_backup(sqlite_url, bundle_store, backup)
    path = Path(sqlite_url.removeprefix("sqlite:///"))
    content = path.read_bytes()
    path.write_bytes(content[:100] + b"\xff" * (len(content) - 100))
    with pytest.raises(Exception, match=r"malformed|sound|database|file"):
        take_backup(sqlite_url, bundle_store, tmp_path / "second")
    assert not list(tmp_path.glob("*second*"))


def test_a_backup_can_be_restored_to_its_origin(
    backup: Path, sqlite_url: str, bundle_store: Path
) -> None:
    path = Path(sqlite_url.removeprefix("sqlite:///"))
    for file in path.parent.glob(f"{path.name}*"):
        file.unlink()
    current = BundleStore(bundle_store).read_current()
    shutil.rmtree(bundle_store)
    restore_backup(backup, sqlite_url, bundle_store)
    BundleStore(bundle_store).open(current)
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT count(*) FROM events").fetchone() == (0,)
    connection.close()


def list_modes(directory: Path) -> set[int]:
    """The permissions of the directory and everything in it."""
    return {path.stat().st_mode & 0o777 for path in (directory, *directory.rglob("*"))}


def test_a_store_may_be_a_link(backup: Path, tmp_path: Path) -> None:
    """As a volume, it cannot be replaced by another directory."""
    target, link = tmp_path / "elsewhere", tmp_path / "link"
    target.mkdir()
    link.symlink_to(target)
    restore_backup(backup, f"sqlite:///{tmp_path / 'again.db'}", link)
    assert BundleStore(target).read_current() is not None
    assert sorted(path.name[0] for path in target.iterdir()) == ["2", "C"]


def test_a_backup_is_readable_by_its_owner_alone(backup: Path, tmp_path: Path) -> None:
    assert list_modes(backup) == {0o600, 0o700}
    url = f"sqlite:///{tmp_path / 'new' / 'kairos.db'}"
    restore_backup(backup, url, tmp_path / "bundles again")
    assert (tmp_path / "new" / "kairos.db").stat().st_mode & 0o777 == 0o600


def test_a_damaged_bundle_is_left_out_and_named(
    bundle_store: Path, sqlite_url: str, tmp_path: Path
) -> None:
    upgrade(sqlite_url)
    current = str(BundleStore(bundle_store).read_current())
    damaged = tiny_bundle.publish(bundle_store, seed=2, activate=False)
    tiny_bundle.damage(bundle_store, damaged)
    record = take_backup(sqlite_url, bundle_store, tmp_path / "backup")
    assert record.left_out.keys() == {damaged}
    assert "altered" in record.left_out[damaged]
    assert BundleStore(tmp_path / "backup" / "store").list_versions() == [current]
    shutil.rmtree(bundle_store / current)
    missing = take_backup(sqlite_url, bundle_store, tmp_path / "second")
    assert missing.left_out.keys() == {damaged, current}


def test_a_broken_pointer_does_not_prevent_a_backup(
    bundle_store: Path, sqlite_url: str, tmp_path: Path
) -> None:
    upgrade(sqlite_url)
    (bundle_store / "CURRENT").unlink()
    (bundle_store / "CURRENT").mkdir()
    (bundle_store / "TRAFFIC.json").write_bytes(b"\xff")
    record = take_backup(sqlite_url, bundle_store, tmp_path / "backup")
    assert record.left_out.keys() == {"CURRENT", "TRAFFIC.json"}
    assert len(BundleStore(tmp_path / "backup" / "store").list_versions()) == 1


def test_a_damaged_bundle_of_an_old_backup_is_not_restored(backup: Path, tmp_path: Path) -> None:
    change_a_byte(backup)
    record = json.loads((backup / "backup.json").read_text())
    record["files"] = {path: file.model_dump() for path, file in copying.list_files(backup).items()}
    (backup / "backup.json").write_text(json.dumps(record))
    url, store = f"sqlite:///{tmp_path / 'new' / 'kairos.db'}", tmp_path / "new" / "bundles"
    restored = restore_backup(backup, url, store)
    assert [*restored.left_out] == [record["current"]]
    assert BundleStore(store).list_versions() == []


SOME_TIME = tiny_bundle.FIRST_AT


def add_events(url: str, *events: tuple[str, int]) -> None:
    """Stores events of users, microseconds after some time."""
    columns = {
        "user_id": [user for user, _ in events],
        "timestamp": [SOME_TIME + at for _, at in events],
    }
    table = pl.DataFrame(columns).with_columns(
        pl.col("timestamp").cast(pl.Datetime("us", "UTC")),
        item_id=pl.lit("i1"),
        action=pl.lit("view"),
        value=pl.lit(None, pl.Float64),
    )
    import_events(url, table)


def erase(url: str, log: ErasureLog, user_id: str, at: int) -> None:
    database = Database(url, threads=1, queue=0)
    database.write_blocking(
        lambda session: ErasureRepository(session).erase(
            user_id, SOME_TIME + at, actor="test", log=log
        )
    )
    database.close()


def list_events(url: str) -> list[tuple[str, int]]:
    events = read_events(url)
    times = (events["timestamp"].to_physical() - SOME_TIME).to_list()
    return sorted(zip(events["user_id"], times, strict=True))


def list_stored(url: str) -> list[tuple[str, int]]:
    """List the events in the table; what reads events leaves erased users out by itself."""
    engine = open_engine(url)
    with engine.connect() as connection:
        rows = connection.execute(text("SELECT user_id, at FROM events ORDER BY user_id, at"))
        found = [(str(row.user_id), row.at - SOME_TIME) for row in rows]
    engine.dispose()
    return found


def test_a_restored_backup_remembers_later_erasures(
    database_url: str, other_database: str, bundle_store: Path, tmp_path: Path
) -> None:
    log = ErasureLog(tmp_path / "log" / "erasures")
    upgrade(database_url)
    add_events(database_url, ("gone", 5), ("kept", 5), ("ü/ \U0001f600", 5))
    take_backup(database_url, bundle_store, tmp_path / "backup")
    erase(database_url, log, "gone", 10)
    erase(database_url, log, "ü/ \U0001f600", 10)
    assert log.file.stat().st_mode & 0o777 == 0o600
    assert "gone" not in log.file.read_text()
    _, replay = copying.restore_backup(
        tmp_path / "backup", other_database, tmp_path / "restored", log
    )
    assert (replay.erasures, replay.rows) == (2, 2)
    assert list_events(other_database) == [("kept", 5)]
    # Copies of the erased events are still refused, and those of a user who returned are not.
    add_events(other_database, ("gone", 5), ("gone", 11))
    assert list_events(other_database) == [("gone", 11), ("kept", 5)]


@contextmanager
def interrupted_erasures(erased: int) -> Iterator[None]:
    """Let users be erased again until so many are; the next one fails."""
    real, left = ErasureRepository.delete_slice, erased

    def erase_or_fail(
        self: ErasureRepository, user_id: str, until: int, *, most: int
    ) -> DeletedSlice:
        nonlocal left
        left -= 1
        deleted = real(self, user_id, until, most=most)
        if left < 0:
            raise DatabaseUnavailableError("the connection is lost before the commit")
        return deleted

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ErasureRepository, "delete_slice", erase_or_fail)
        yield


def test_an_interrupted_replay_is_finished_by_the_next_one(
    database_url: str, tmp_path: Path
) -> None:
    log = ErasureLog(tmp_path / "erasures")
    gone = ("a", "b", "c", "without rows")
    log.append({compute_user_digest(user_id): SOME_TIME + 10 for user_id in gone})
    upgrade(database_url)
    add_events(database_url, ("a", 5), ("b", 10), ("c", 5), ("c", 11), ("kept", 5))
    database = Database(database_url, threads=1, queue=0)
    with interrupted_erasures(1), pytest.raises(DatabaseUnavailableError):
        replay_erasures(database, log)
    assert [user_id for user_id, _ in list_stored(database_url)] == ["b", "c", "c", "kept"]
    # Copies are refused even before the rows are deleted.
    add_events(database_url, ("a", 5), ("c", 6), ("without rows", 5))
    replay = replay_erasures(database, log)
    assert (replay.erasures, replay.rows) == (3, 2)
    assert list_stored(database_url) == [("c", 11), ("kept", 5)]
    assert replay_erasures(database, log) == Replay()
    database.close()


def test_a_user_of_many_rows_is_erased_in_slices(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that each transaction has the time of a request, and an interrupted one loses little."""
    monkeypatch.setattr("app.db.erasure_replay._ROWS_PER_SLICE", 2)
    log = ErasureLog(tmp_path / "erasures")
    log.append({compute_user_digest("a"): SOME_TIME + 10})
    upgrade(database_url)
    add_events(database_url, *(("a", at) for at in range(6)), ("a", 11), ("kept", 5))
    database = Database(database_url, threads=1, queue=0)
    with interrupted_erasures(2), pytest.raises(DatabaseUnavailableError):
        replay_erasures(database, log)
    assert list_stored(database_url) == [("a", 4), ("a", 5), ("a", 11), ("kept", 5)]
    assert replay_erasures(database, log) == Replay(erasures=1, rows=2)
    assert list_stored(database_url) == [("a", 11), ("kept", 5)]
    database.close()


def test_an_interrupted_restore_erases_at_the_next_start(
    database_url: str, other_database: str, bundle_store: Path, tmp_path: Path
) -> None:
    log = ErasureLog(tmp_path / "erasures")
    upgrade(database_url)
    add_events(database_url, ("a", 5), ("b", 5), ("kept", 5))
    backup, store = tmp_path / "backup", tmp_path / "restored"
    take_backup(database_url, bundle_store, backup)
    erase(database_url, log, "a", 10)
    erase(database_url, log, "b", 10)
    with interrupted_erasures(1), pytest.raises(DatabaseUnavailableError):
        copying.restore_backup(backup, other_database, store, log)
    if other_database.startswith("sqlite"):
        copying.restore_backup(backup, other_database, store, log)
    else:
        # The restored tables stay.
        database = Database(other_database, threads=1, queue=0)
        assert replay_erasures(database, log).rows == 1
        database.close()
    assert list_stored(other_database) == [("kept", 5)]


@pytest.mark.slow
def test_replicas_that_start_together_replay_at_once(database_url: str, tmp_path: Path) -> None:
    log = ErasureLog(tmp_path / "erasures")
    log.append({compute_user_digest(f"u{number}"): SOME_TIME + 10 for number in range(50)})
    upgrade(database_url)
    add_events(database_url, *((f"u{number}", 5) for number in range(60)))
    replicas = [Database(database_url, threads=1, queue=0) for _ in range(4)]
    with ThreadPoolExecutor(len(replicas)) as threads:
        replays = [*threads.map(lambda database: replay_erasures(database, log), replicas)]
    for database in replicas:
        database.close()
    assert sum(replay.rows for replay in replays) == 50
    assert len(list_events(database_url)) == 10


def test_a_service_erases_restored_users_again_at_start(settings: Settings, tmp_path: Path) -> None:
    url, log = settings.database_url, open_erasure_log("sqlite:///x", settings.erasure_log)
    add_events(url, ("gone", 5), ("gone", 12), ("kept", 5))
    log.append({compute_user_digest("gone"): SOME_TIME + 10})
    with running(settings):
        assert list_events(url) == [("gone", 12), ("kept", 5)]
    erase(url, ErasureLog(tmp_path / "another"), "kept", 20)  # by another machine, or release
    with running(settings):
        assert log.read()[compute_user_digest("kept")] == SOME_TIME + 20


def test_an_erasure_that_cannot_be_logged_is_refused(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    unusable = settings.model_copy(update={"erasure_log": tmp_path / "file" / "erasures"})
    add_events(settings.database_url, ("stays", 5))
    with running(unusable) as client:
        response = client.request("DELETE", "/v1/users/stays")
        problem(response, 503, "erasure_log_unavailable")
        assert list_events(settings.database_url) == [("stays", 5)]


def test_a_log_with_an_unfinished_line_is_read_and_continued(tmp_path: Path) -> None:
    log = ErasureLog(tmp_path / "erasures")
    log.append({"a": 1, "b": 2})
    with log.file.open("ab") as stream:
        stream.write(b'{"digest":"c","era')
    assert log.read() == {"a": 1, "b": 2}
    log.append({"a": 3})
    log.append({"b": 1})
    assert log.read() == {"a": 3, "b": 2}


INTERRUPTED = (
    "import os, signal, sys\n"
    "from pathlib import Path\n"
    "from app.backups import copying, sqlite\n"
    "from app.db.erasure_log import ErasureLog\n"
    "def die(*_, **__): os.kill(os.getpid(), signal.SIGKILL)\n"
    "module, name = sys.argv[1].split('.')\n"
    "setattr({'copying': copying, 'sqlite': sqlite, 'Path': Path}[module], name, die)\n"
    "backup, url, store = sys.argv[2:]\n"
    "copying.restore_backup(Path(backup), url, Path(store), ErasureLog(Path(backup + '.log')))\n"
)


@pytest.mark.slow
@pytest.mark.parametrize(
    "stage",
    ["copying._copy_bundle", "copying.replay_erasures", "sqlite.put_in_place", "sqlite.remove"],
)
def test_a_killed_restore_leaves_nothing_or_is_refused(
    backup: Path, tmp_path: Path, stage: str
) -> None:
    url, store = f"sqlite:///{tmp_path / 'new' / 'kairos.db'}", tmp_path / "new" / "bundles"
    # `remove` is called before the copy is staged, and after it was put in place.
    killed = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, stage, str(backup), url, str(store)], check=False
    )
    assert killed.returncode == -signal.SIGKILL
    # The copy lies in the store, which may be a volume, under a hidden name.
    assert list(store.glob("[!.]*")) == []
    assert not (tmp_path / "new" / "kairos.db").exists()
    restore_backup(backup, url, store)
    BundleStore(store).open()
    assert list(store.glob(".*")) == []
    assert sorted(path.name for path in store.parent.iterdir()) == ["bundles", "kairos.db"]


def test_what_a_killed_backup_left_is_removed(
    backup: Path, sqlite_url: str, bundle_store: Path
) -> None:
    leftover = backup.with_name(".backup-01234567")
    (leftover / "database").mkdir(parents=True)
    (leftover / "database" / "kairos.db").write_bytes(b"half of it")
    take_backup(sqlite_url, bundle_store, backup.with_name("second"))
    assert not leftover.exists()
