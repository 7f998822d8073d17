"""A database that is created from whole tables."""

import multiprocessing
import sqlite3
import threading
from multiprocessing.synchronize import Event
from pathlib import Path

import polars as pl
import pytest

from app.imports import import_events, import_items
from app.new_database import DatabaseExistsError, create_database
from migrations.run import check, upgrade
from model.errors import EventSourceError
from tests.training.inspection.event_tables import DAY, draw_events, make_events

ITEMS = pl.DataFrame(
    {"item_id": ["i0", "i1"], "title": ["Ink", None], "categories": [["Office"], []]},
    schema={"item_id": pl.String, "title": pl.String, "categories": pl.List(pl.String)},
)


def dump(file: Path, table: str) -> list[tuple[object, ...]]:
    """The rows of a table, without the instants of the import."""
    connection = sqlite3.connect(file)
    rows = pl.read_database(f"SELECT * FROM {table} ORDER BY 1", connection)
    connection.close()
    return rows.drop("received_at", "updated_at", strict=False).rows()


def test_it_holds_what_an_import_stores(tmp_path: Path) -> None:
    twice = make_events([("u", "i", 0), ("u", "i", 0), ("u", "j", DAY), ("u", "i", 0)])
    events = pl.concat([draw_events(events=300), twice])
    created, imported = tmp_path / "new" / "kairos.db", tmp_path / "kairos.db"
    outcome = create_database(created, events, ITEMS)
    upgrade(f"sqlite:///{imported}")
    import_items(f"sqlite:///{imported}", ITEMS)
    assert outcome.stored == import_events(f"sqlite:///{imported}", events).stored == len(events)
    for table in ("events", "items"):
        assert dump(created, table) == dump(imported, table)
    assert [file.name for file in created.parent.iterdir()] == ["kairos.db"]
    check(f"sqlite:///{created}")


def test_it_has_the_indexes_and_triggers_of_a_migrated_one(tmp_path: Path) -> None:
    created, migrated = tmp_path / "new.db", tmp_path / "kairos.db"
    create_database(created, draw_events(events=120), None)
    upgrade(f"sqlite:///{migrated}")
    found = []
    for file in (created, migrated):
        connection = sqlite3.connect(file)
        found.append({*connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master")})
        connection.close()
    assert found[0] == found[1]
    assert {kind for kind, *_ in found[0]} >= {"index", "table", "trigger"}


def test_an_import_into_it_stores_nothing_twice(tmp_path: Path) -> None:
    events = draw_events(events=50)
    create_database(tmp_path / "kairos.db", events, None)
    assert import_events(f"sqlite:///{tmp_path / 'kairos.db'}", events).stored == 0


def test_an_event_that_cannot_be_stored_leaves_no_database(tmp_path: Path) -> None:
    events = make_events([("u" * 300, "i", 0)])
    with pytest.raises(EventSourceError, match="row 1, column 'user_id'"):
        create_database(tmp_path / "kairos.db", events, None)
    assert not (tmp_path / "kairos.db").exists()


def test_a_creation_that_was_killed_is_begun_again(tmp_path: Path) -> None:
    (tmp_path / ".kairos.db.incoming").write_bytes(b"half")
    (tmp_path / ".kairos.db.incoming-wal").write_bytes(b"half")
    create_database(tmp_path / "kairos.db", draw_events(events=10), None)
    assert len(dump(tmp_path / "kairos.db", "events")) == 10


def create_slowly(file: Path, events: pl.DataFrame, started: Event, may_end: Event) -> None:
    def wait(_: int) -> None:
        started.set()
        may_end.wait(60)

    create_database(file, events, None, on_chunk=wait)


def test_a_second_creation_waits_and_changes_nothing(tmp_path: Path) -> None:
    file, spawn = tmp_path / "kairos.db", multiprocessing.get_context("spawn")
    started, may_end = spawn.Event(), spawn.Event()
    events = draw_events(events=300)
    first = spawn.Process(target=create_slowly, args=(file, events, started, may_end))
    first.start()
    assert started.wait(60)
    # The second is waiting, or about to wait, when the first goes on.
    threading.Timer(0.5, may_end.set).start()
    with pytest.raises(DatabaseExistsError, match="start again"):
        create_database(file, draw_events(events=10), None)
    first.join(60)
    assert first.exitcode == 0
    assert len(dump(file, "events")) == 300
    assert [each.name for each in tmp_path.iterdir()] == ["kairos.db"]
