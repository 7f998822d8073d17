"""Preparations read the tables that the service writes, in ranges of keys."""

from hashlib import sha256
from pathlib import Path

import polars as pl
import pytest
from sqlalchemy import delete, insert

from app.db.engine import open_engine as open_database
from app.db.tables import ErasedUser, StoredEvent
from tests.training.preparation.worlds import odd_world
from training.data.sources import read_events
from training.engines import open_engine
from training.preparation import prepare as preparing
from training.preparation.events import PreparedEvents
from training.preparation.prepare import prepare
from training.preparation.stages import BuildTask, BuiltShard


@pytest.fixture(autouse=True)
def _small_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preparing, "RANGE_EVENTS", 700)


def store(url: str, events: pl.DataFrame, first: int) -> None:
    """Store events with every second key from `first` on."""
    columns = events.select("user_id", "item_id", pl.col("timestamp").to_physical(), "action")
    rows = [
        {
            "id": first + 2 * number,
            "event_id": f"e{first + 2 * number}",
            "user_id": user_id,
            "item_id": item_id,
            "at": at,
            "action": action,
            "received_at": 0,
        }
        for number, (user_id, item_id, at, action) in enumerate(columns.rows())
    ]
    execute(url, insert(StoredEvent), rows)


def execute(url: str, *statement: object) -> None:
    engine = open_database(url)
    with engine.begin() as connection:
        connection.execute(*statement)
    engine.dispose()


def prepare_from(url: str, directory: Path) -> PreparedEvents:
    with open_engine("local") as engine:
        prepare(url, str(directory), engine, shards=3)
    return PreparedEvents.open(str(directory))


def digests(prepared: PreparedEvents) -> list[str]:
    return [shard.sha256 for shard in prepared.manifest.shards]


def test_a_database_is_read_in_ranges_of_keys(migrated_database_url: str, tmp_path: Path) -> None:
    events = odd_world(2_000)
    store(migrated_database_url, events, 1)
    prepared = prepare_from(migrated_database_url, tmp_path / "prepared")
    assert len(prepared.manifest.plan.parts) == 2 * len(events) // 700 + 1
    whole = prepared.read_sample(10**9)
    assert whole.equals(
        read_events(migrated_database_url).with_columns(value=pl.lit(None, pl.Float64))
    )


def test_later_events_of_a_database_are_added(
    migrated_database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = odd_world(2_000)
    store(migrated_database_url, events[:1_500], 1)
    prepare_from(migrated_database_url, tmp_path / "grown")
    store(migrated_database_url, events[1_500:], 3_001)
    read: list[int] = []
    partition = preparing.partition
    monkeypatch.setattr(
        preparing, "partition", lambda task: read.append(task.parts[0][1].after) or partition(task)
    )
    grown = prepare_from(migrated_database_url, tmp_path / "grown")
    assert min(read) == 2_999
    read.clear()
    whole = prepare_from(migrated_database_url, tmp_path / "anew")
    assert min(read) == 0
    assert digests(grown) == digests(whole)


def test_an_interrupted_reading_goes_on_while_events_arrive(
    migrated_sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = odd_world(2_000)
    store(migrated_sqlite_url, events[:1_500], 1)

    def stop(task: BuildTask) -> BuiltShard:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(preparing, "build_shard", stop)
        with pytest.raises(KeyboardInterrupt):
            prepare_from(migrated_sqlite_url, tmp_path / "prepared")
    store(migrated_sqlite_url, events[1_500:], 3_001)
    with monkeypatch.context() as patch:
        patch.setattr(preparing, "partition", None)  # all is read
        prepared = prepare_from(migrated_sqlite_url, tmp_path / "prepared")
    assert prepared.manifest.events == 1_500
    grown = prepare_from(migrated_sqlite_url, tmp_path / "prepared")
    whole = prepare_from(migrated_sqlite_url, tmp_path / "anew")
    assert digests(grown) == digests(whole)


def test_an_interrupted_reading_begins_anew_after_an_erasure(
    migrated_sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = odd_world(1_000)
    store(migrated_sqlite_url, events, 1)

    def stop(task: BuildTask) -> BuiltShard:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(preparing, "build_shard", stop)
        with pytest.raises(KeyboardInterrupt):
            prepare_from(migrated_sqlite_url, tmp_path / "prepared")
    execute(migrated_sqlite_url, delete(StoredEvent).where(StoredEvent.user_id == "user-1é"))
    prepared = prepare_from(migrated_sqlite_url, tmp_path / "prepared")
    users = {user for shard in prepared.shards for user in shard.list_users()}
    assert "user-1é" not in users
    assert [path.name for path in (tmp_path / "prepared").iterdir() if path.is_dir()] == [
        prepared.manifest.folder
    ]


def test_an_event_that_became_visible_late_is_read(
    migrated_sqlite_url: str, tmp_path: Path
) -> None:
    events = odd_world(1_000)
    store(migrated_sqlite_url, events, 1)
    prepare_from(migrated_sqlite_url, tmp_path / "prepared")
    store(migrated_sqlite_url, events[:1], 100)
    prepared = prepare_from(migrated_sqlite_url, tmp_path / "prepared")
    assert prepared.manifest.events == len(events) + 1


def test_users_erased_since_are_left_out(migrated_sqlite_url: str, tmp_path: Path) -> None:
    events = odd_world(1_000)
    store(migrated_sqlite_url, events, 1)
    before = prepare_from(migrated_sqlite_url, tmp_path / "prepared")
    erased = StoredEvent.user_id == "user-1é"
    execute(migrated_sqlite_url, delete(StoredEvent).where(erased))
    digest = sha256("user-1é".encode()).hexdigest()
    row = {"digest": digest, "erased_at": 0}
    execute(migrated_sqlite_url, insert(ErasedUser), [row])
    after = prepare_from(migrated_sqlite_url, tmp_path / "prepared")
    assert after.manifest.users == before.manifest.users - 1
    users = {user for shard in after.shards for user in shard.list_users()}
    assert "user-1é" not in users
    assert {path.name for path in (tmp_path / "prepared").iterdir()} == {
        after.manifest.folder,
        "manifest.json",
    }
