"""An event is reported as stored only if it is, also where the ids of rows are in disorder."""

import polars as pl
import pytest
from sqlalchemy import text
from sqlalchemy.orm import Session

from app.db.engine import WRITES, open_engine
from app.db.events import EventRepository, EventRow
from app.errors import DatabaseDamagedError
from app.imports import import_events
from tests.tiny import event_log


def add(url: str, *keys: str) -> int:
    engine = open_engine(url)
    try:
        with Session(engine.execution_options(**WRITES)) as session, session.begin():
            rows = [EventRow(key, "u1", "i1", "view", 1, None, None, None, 1) for key in keys]
            return len(EventRepository(session).add(rows).new)
    finally:
        engine.dispose()


def set_back(url: str, *, to: int) -> None:
    """Let the sequence of ids lag behind those of the rows."""
    engine = open_engine(url)
    with engine.begin() as connection:
        connection.execute(text(f"SELECT setval('events_id_seq', {to})"))
    engine.dispose()


@pytest.mark.parametrize("keys", [["e9"], ["e8", "e9"], ["e1", "e9"]])
def test_an_event_whose_id_is_taken_is_not_dropped(
    migrated_postgresql_url: str, keys: list[str]
) -> None:
    assert add(migrated_postgresql_url, "e1", "e2", "e3", "e4") == 4
    set_back(migrated_postgresql_url, to=1)
    with pytest.raises(DatabaseDamagedError, match="run SELECT setval"):
        add(migrated_postgresql_url, *keys)
    set_back(migrated_postgresql_url, to=4)
    assert add(migrated_postgresql_url, *keys) == len({*keys} - {"e1"})
    assert add(migrated_postgresql_url, *keys) == 0


def test_an_import_whose_ids_are_taken_is_refused(migrated_postgresql_url: str) -> None:
    events = event_log([("u1", f"i{number}", number) for number in range(1, 9)])
    events = events.with_columns(timestamp=pl.col("timestamp").dt.offset_by("20y"))
    assert import_events(migrated_postgresql_url, events.head(4)).stored == 4
    set_back(migrated_postgresql_url, to=1)
    with pytest.raises(DatabaseDamagedError, match="run SELECT setval"):
        import_events(migrated_postgresql_url, events.tail(4))
    set_back(migrated_postgresql_url, to=4)
    assert import_events(migrated_postgresql_url, events.tail(4)).stored == 4
    assert import_events(migrated_postgresql_url, events.tail(4)).known == 4
