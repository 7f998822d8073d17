"""Exports and imports: a round trip adds nothing, in any combination; on both databases."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from app.db.engine import WRITES, open_engine
from app.db.events import EventRepository, EventRow, compute_natural_key
from app.db.tables import ErasedUser, StoredEvent
from app.imports import ImportedEvents, import_events
from migrations import run
from model.clock import now
from training.data.columns import EVENT_SCHEMA
from training.data.event_file import write_events
from training.data.sources import read_events, read_stored_events

AT = 1_767_225_600_123_456
OLD_COLUMNS = list(EVENT_SCHEMA)
LOOKALIKES = ("007", "7", "1e5", "NaN", "null", "true", " 8", "8 ", '"', "a,b", "ü", "\ufeffx")

ids = st.sampled_from(LOOKALIKES)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text("aü\"\\,'\n", max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(ids, inner, max_size=2),
    max_leaves=3,
)


@st.composite
def event_rows(draw: st.DrawFn) -> EventRow:
    """Draw an event from few values, so that many are equal; with an id of its sender, or not."""
    natural = (
        draw(st.sampled_from(("007", "7", "1e5"))),
        draw(st.sampled_from(("NaN", "a,b"))),
        draw(st.sampled_from(("view", "1.0"))),
        draw(st.sampled_from((AT, AT + 1, AT - 10**15 + 7))),
    )
    own = draw(st.none() | ids)
    occurrence = draw(st.integers(0, 1))
    return EventRow(
        own or compute_natural_key(*natural, occurrence),
        *natural,
        value=draw(st.none() | st.floats(allow_nan=False, allow_infinity=False)),
        recommendation_id=draw(st.none() | ids),
        properties=draw(st.none() | st.dictionaries(ids, json_values, max_size=2)),
        received_at=AT + draw(st.integers(0, 9)),
        sender_event_id=None if own is None else draw(st.none() | ids),
    )


@pytest.fixture
def databases(database_url: str, tmp_path: Path) -> tuple[str, str]:
    """A migrated database of each kind, and a second one on SQLite."""
    second = f"sqlite:///{tmp_path / 'second.db'}"
    for url in (database_url, second):
        run.upgrade(url)
    return database_url, second


def store(url: str, rows: Sequence[EventRow]) -> None:
    engine = open_engine(url)
    with Session(engine.execution_options(**WRITES)) as session, session.begin():
        EventRepository(session).add(rows)
    engine.dispose()


def empty(*urls: str) -> None:
    for url in urls:
        engine = open_engine(url)
        with Session(engine.execution_options(**WRITES)) as session, session.begin():
            session.execute(delete(StoredEvent))
            session.execute(delete(ErasedUser))
        engine.dispose()


def stored(url: str) -> list[tuple[Any, ...]]:
    """Read every event in order of arrival, without its number."""
    columns = [column for column in StoredEvent.__table__.columns if column.name != "id"]
    engine = open_engine(url)
    with Session(engine) as session:
        rows = [tuple(row) for row in session.execute(select(*columns).order_by(StoredEvent.id))]
    engine.dispose()
    return rows


def export(url: str, file: Path, columns: Sequence[str] | None = None) -> Path:
    """Export a database; of older exports, only some columns."""
    write_events(url, file)
    if columns is not None and file.suffix == ".parquet":
        pl.read_parquet(file).select(columns).write_parquet(file)
    elif columns is not None:
        pl.read_csv(file, infer_schema=False).select(columns).write_csv(file)
    return file


def load(url: str, file: Path) -> ImportedEvents:
    return import_events(url, read_stored_events(file))


few_examples = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25
)
stored_rows = given(
    rows=st.lists(event_rows(), max_size=12), suffix=st.sampled_from((".parquet", ".csv"))
)


@pytest.mark.slow
@few_examples
@stored_rows
def test_a_round_trip_adds_nothing(
    databases: tuple[str, str], tmp_path: Path, rows: list[EventRow], suffix: str
) -> None:
    first, second = databases
    empty(first, second)
    store(first, rows)
    before = stored(first)
    whole = export(first, tmp_path / f"whole{suffix}")
    assert load(first, whole).stored == 0
    old = export(first, tmp_path / f"old{suffix}", OLD_COLUMNS)
    assert load(first, old).stored == 0
    assert stored(first) == before
    assert load(second, whole).stored == len(before)
    assert stored(second) == before
    assert load(second, old).stored == load(second, whole).stored == 0
    assert load(first, export(second, tmp_path / f"back{suffix}")).stored == 0
    assert stored(second) == before


@pytest.mark.slow
@few_examples
@stored_rows
def test_an_older_export_and_a_newer_one_meet_without_duplicates(
    databases: tuple[str, str], tmp_path: Path, rows: list[EventRow], suffix: str
) -> None:
    first, second = databases
    empty(first, second)
    store(first, rows)
    old = export(first, tmp_path / f"old{suffix}", OLD_COLUMNS)
    whole = export(first, tmp_path / f"whole{suffix}")
    assert load(second, old).stored == len(stored(first))
    assert load(second, whole).stored == 0
    assert load(first, export(second, tmp_path / f"back{suffix}")).stored == 0
    assert read_events(second).equals(read_events(first))


def test_chunks_do_not_change_what_is_stored(
    databases: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.imports.CHUNK", 1)
    first, second = databases
    natural = ("u", "i", "view", AT)
    keys = ("own1", compute_natural_key(*natural), "own2", compute_natural_key(*natural, 1))
    rows = [EventRow(key, *natural, None, None, None, AT) for key in keys]
    store(first, rows)
    old = export(first, tmp_path / "old.parquet", OLD_COLUMNS)
    whole = export(first, tmp_path / "whole.parquet")
    assert load(first, old).stored == load(first, whole).stored == 0
    assert load(second, old).stored == 4
    assert load(second, whole).stored == 0
    store(second, [EventRow("own3", *natural, None, None, None, AT)])
    assert load(second, old).stored == 0
    assert len(stored(second)) == 5


def test_different_ids_of_senders_are_different_events(databases: tuple[str, str]) -> None:
    url, _ = databases
    natural = ("u", "i", "view", AT)
    store(url, [EventRow("own1", *natural, None, None, None, AT)])
    table = pl.DataFrame(
        {
            "user_id": "u",
            "item_id": "i",
            "action": "view",
            "timestamp": [AT] * 3,
            "value": None,
            "event_id": ["own2", None, "own1"],
        },
        schema_overrides={"timestamp": EVENT_SCHEMA["timestamp"], "value": pl.Float64},
    )
    assert import_events(url, table).stored == 2
    assert import_events(url, table).stored == 0


def test_an_import_arrives_by_now_at_the_latest(databases: tuple[str, str], tmp_path: Path) -> None:
    url, _ = databases
    file = tmp_path / "events.csv"
    file.write_text(
        "user_id,item_id,timestamp,received_at\n"
        "u,i,2026-01-01T00:00:00Z,2026-01-02T00:00:00Z\n"
        "v,i,2026-01-01T00:00:00Z,2999-01-02T00:00:00Z\n"
        "w,i,2026-01-01T00:00:00Z,\n"
    )
    began = now()
    load(url, file)
    kept, later, missing = (
        row[StoredEvent.__table__.columns.keys().index("received_at") - 1] for row in stored(url)
    )
    assert kept == 1_767_312_000_000_000
    assert began <= later <= now()
    assert began <= missing <= now()
