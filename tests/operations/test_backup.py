"""Backup and restore: acknowledged events are kept, and responses stay equal."""

import json
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from uuid import uuid4

import httpx
import polars as pl
import psycopg
import pytest

from app.backups.copying import restore_backup, take_backup
from app.backups.record import BackupError
from app.imports import import_events
from migrations.run import upgrade
from model.store.store import BundleStore
from tests.app import tiny_bundle
from tests.processes import Server, eventually, processes

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


class Ingest:
    """Sends events continuously from a thread, and collects the acknowledged ids."""

    def __init__(self, server: Server) -> None:
        self._http = httpx.Client(base_url=server.url, timeout=30)
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
