"""Events in partitions by month: each once, found, erased and dropped as in one table."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager

import psycopg
import pytest
from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from app.db import partitions
from app.db.engine import WRITES, open_engine
from app.db.erasures import ErasureRepository
from app.db.events import EventRepository, EventRow
from app.db.partitions import (
    Month,
    PartitionError,
    extend_partitions,
    is_of_partitions,
    partition_events,
    prune_events,
)
from app.errors import DatabaseUnavailableError
from migrations.run import check
from model.clock import MICROSECONDS_PER_DAY, now

DAY = MICROSECONDS_PER_DAY
THIS_MONTH = Month.of(now())


def event(number: int, *, at: int, user: str = "u1", key: str | None = None) -> EventRow:
    key = key or f"e{number}"
    return EventRow(key, user, f"i{number % 7}", "view", at, None, None, None, now())


@contextmanager
def session(url: str) -> Iterator[Session]:
    engine = open_engine(url)
    try:
        with Session(engine.execution_options(**WRITES)) as opened, opened.begin():
            yield opened
    finally:
        engine.dispose()


def add(url: str, *rows: EventRow) -> int:
    with session(url) as opened:
        return len(EventRepository(opened).add(rows).new)


def read(url: str, query: str) -> list[tuple[object, ...]]:
    with session(url) as opened:
        return [tuple(row) for row in opened.execute(text(query))]


def count(url: str, table: str) -> int:
    ((number,),) = read(url, f"SELECT count(*) FROM {table}")
    assert isinstance(number, int)
    return number


def month(ago: int) -> int:
    """The first instant of the month that many months ago."""
    return THIS_MONTH.add(-ago).begins_at


@pytest.fixture
def url(migrated_postgresql_url: str) -> str:
    """A database with an event in each of the last six months, in partitions."""
    rows = [event(number, at=month(number)) for number in range(6)]
    assert add(migrated_postgresql_url, *rows) == 6
    assert partition_events(migrated_postgresql_url) == 6
    return migrated_postgresql_url


EVERYTHING = (
    "SELECT id, event_id, user_id, item_id, action, at, received_at FROM events ORDER BY id"
)


def test_the_events_stay_as_they_are(migrated_postgresql_url: str) -> None:
    add(migrated_postgresql_url, *(event(number, at=month(number)) for number in range(6)))
    before = read(migrated_postgresql_url, EVERYTHING)
    partition_events(migrated_postgresql_url)
    assert read(migrated_postgresql_url, EVERYTHING) == before
    assert partition_events(migrated_postgresql_url) == 0
    assert read(migrated_postgresql_url, EVERYTHING) == before
    add(migrated_postgresql_url, event(6, at=month(0)))
    assert len(read(migrated_postgresql_url, EVERYTHING)) == 7
    assert max(read(migrated_postgresql_url, "SELECT id FROM events")) > max(before)[:1]


def test_each_month_is_a_table(url: str) -> None:
    for ago in range(6):
        assert count(url, THIS_MONTH.add(-ago).partition) == 1
    for ahead in (1, 2, 3):
        assert count(url, THIS_MONTH.add(ahead).partition) == 0
    assert count(url, "events_default") == 0


def test_the_schema_is_the_declared_one(url: str) -> None:
    check(url)
    names = {name for (name,) in read(url, "SELECT tgname FROM pg_trigger WHERE NOT tgisinternal")}
    assert {"count_click", "uncount_clicks", "keep_event_key", "drop_event_keys"} <= names


def test_a_reader_may_read_as_before(migrated_postgresql_url: str) -> None:
    role = "analyst_of_partitions"
    with psycopg.connect(migrated_postgresql_url, autocommit=True) as connection:
        connection.execute(f"DROP ROLE IF EXISTS {role}")
        connection.execute(f"CREATE ROLE {role}")
        try:
            connection.execute(f"GRANT SELECT ON events TO {role}")
            partition_events(migrated_postgresql_url)
            found = connection.execute(f"SELECT has_table_privilege('{role}', 'events', 'SELECT')")
            assert found.fetchone() == (True,)
        finally:
            connection.execute(f"DROP OWNED BY {role}")
            connection.execute(f"DROP ROLE {role}")


@pytest.mark.parametrize("ago", [0, 2, 40])
def test_a_repeated_id_is_a_repetition_at_any_time(url: str, ago: int) -> None:
    assert add(url, event(0, at=month(ago), key="e3")) == 0
    assert add(url, event(9, at=month(ago)), event(9, at=month(0) + DAY)) == 1
    assert count(url, "events") == 7
    assert count(url, "event_keys") == 7


def test_of_two_events_at_once_with_one_id_one_is_stored(url: str) -> None:
    meeting = threading.Barrier(4)

    def send(ago: int) -> int:
        meeting.wait(10)
        return add(url, *(event(number, at=month(ago)) for number in range(100, 140)))

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(send, range(4))) == 40
    assert count(url, "events") == count(url, "event_keys") == 46


def test_an_aborted_event_may_be_sent_again(url: str) -> None:
    def fail() -> None:
        with session(url) as opened:
            assert len(EventRepository(opened).add([event(50, at=month(1))]).new) == 1
            raise RuntimeError("the connection was lost")

    with pytest.raises(RuntimeError):
        fail()
    assert add(url, event(50, at=month(1))) == 1


def test_an_erased_user_leaves_no_id(url: str) -> None:
    add(url, *(event(number, at=month(number % 6), user="u2") for number in range(10, 40)))
    with session(url) as opened:
        erasure = ErasureRepository(opened).erase("u2", now(), actor="tests")
    assert erasure.events == 30
    assert count(url, "events") == count(url, "event_keys") == 6
    assert add(url, event(10, at=month(0), user="u2")) == 0


def test_a_history_spans_the_months(url: str) -> None:
    with session(url) as opened:
        history = EventRepository(opened).read_history("u1", now(), 4)
        assert [one.at for one in history] == [month(ago) for ago in (3, 2, 1, 0)]
        assert [one.at for one in EventRepository(opened).read_history("u1", month(4), 9)] == [
            month(5),
            month(4),
        ]


def test_a_missing_month_is_made_of_what_came_early(url: str) -> None:
    early = THIS_MONTH.add(2)
    with session(url) as opened:
        opened.execute(text(f"DROP TABLE {early.partition}"))
    assert add(url, event(60, at=early.begins_at), event(61, at=month(30))) == 2
    assert count(url, "events_default") == 2
    assert extend_partitions(url) == [early.partition]
    assert count(url, "events_default") == count(url, early.partition) == 1
    assert extend_partitions(url) == []
    assert add(url, event(60, at=early.begins_at)) == 0
    assert count(url, "event_keys") == count(url, "events") == 8
    check(url)


def test_a_partition_of_an_operator_stays_and_is_pruned(url: str) -> None:
    old = THIS_MONTH.add(-30)
    with session(url) as opened:
        opened.execute(text(f"CREATE TABLE events_old PARTITION OF events FOR VALUES {old.bounds}"))
    assert add(url, event(70, at=month(30))) == 1
    assert count(url, "events_old") == 1
    assert extend_partitions(url) == []
    assert prune_events(url, 3).others == 1
    assert count(url, "events_old") == 0


def test_a_month_that_another_partition_holds_is_not_made(url: str) -> None:
    first, last = THIS_MONTH.add(4), THIS_MONTH.add(5)
    bounds = f"FROM ({first.begins_at + DAY}) TO ({last.begins_at + DAY})"
    with session(url) as opened:
        opened.execute(text(f"CREATE TABLE events_later PARTITION OF events FOR VALUES {bounds}"))
        opened.execute(text(f"DROP TABLE {THIS_MONTH.add(2).partition}"))
    assert extend_partitions(url, months_ahead=6) == [
        THIS_MONTH.add(2).partition,
        THIS_MONTH.add(6).partition,
    ]


def test_a_name_of_a_month_alone_drops_no_partition(url: str) -> None:
    name = THIS_MONTH.add(-30).partition
    bounds = f"FROM (0) TO ({THIS_MONTH.add(-29).begins_at})"
    with session(url) as opened:
        opened.execute(text(f"CREATE TABLE {name} PARTITION OF events FOR VALUES {bounds}"))
    assert add(url, event(70, at=month(30))) == 1
    pruned = prune_events(url, 31)
    assert (pruned.partitions, pruned.others) == ({}, 0)
    assert count(url, name) == 1


def test_only_the_last_months_stay(url: str) -> None:
    add(url, event(70, at=month(30)))
    planned = prune_events(url, 3, is_dry_run=True)
    assert count(url, "events") == 7
    assert planned == prune_events(url, 3)
    assert planned.partitions == {THIS_MONTH.add(-ago).partition: 1 for ago in (3, 4, 5)}
    assert (planned.others, planned.events) == (1, 4)
    ((oldest,),) = read(url, "SELECT min(at) FROM events")
    assert oldest == month(2)
    assert count(url, "events") == count(url, "event_keys") == 3
    assert prune_events(url, 3).events == 0
    check(url)


def test_a_month_that_cannot_be_dropped_stays_whole(url: str) -> None:
    with session(url) as opened:
        opened.execute(text(f"CREATE VIEW old AS SELECT * FROM {THIS_MONTH.add(-4).partition}"))
    with pytest.raises(SQLAlchemyError):
        prune_events(url, 3)
    assert count(url, "events") == 5
    with session(url) as opened:
        opened.execute(text("DROP VIEW old"))
    assert prune_events(url, 3).events == 2
    tables = {table for (table,) in read(url, "SELECT tablename FROM pg_tables")}
    assert not tables & {THIS_MONTH.add(-ago).partition for ago in (3, 4, 5)}


def test_months_are_dropped_twice_at_once(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    meeting = threading.Barrier(2)
    change = partitions._change
    begun = threading.local()

    def meet(engine: Engine) -> AbstractContextManager[Connection]:
        if not hasattr(begun, "here"):  # both know by now what to drop
            begun.here = True
            meeting.wait(10)
        return change(engine)

    monkeypatch.setattr(partitions, "_change", meet)
    with ThreadPoolExecutor(2) as pool:
        assert {pruned.events for pruned in pool.map(prune_events, [url] * 2, [3, 3])} == {3}
    assert count(url, "events") == count(url, "event_keys") == 3


def test_the_service_does_not_wait_long_for_a_change(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with session(url) as opened:
        opened.execute(text(f"DROP TABLE {THIS_MONTH.add(2).partition}"))
    monkeypatch.setattr(partitions, "_PATIENCE", "50ms")
    with session(url) as opened:
        opened.execute(text(f"SELECT pg_advisory_xact_lock({partitions._LOCK})"))
        with pytest.raises(DatabaseUnavailableError, match="LockNotAvailable"):
            extend_partitions(url)
    assert extend_partitions(url) == [THIS_MONTH.add(2).partition]


def test_events_in_one_table_are_not_dropped(migrated_postgresql_url: str, sqlite_url: str) -> None:
    with pytest.raises(PartitionError, match="kairos partition-events"):
        prune_events(migrated_postgresql_url, 3)
    assert extend_partitions(migrated_postgresql_url) == []
    with pytest.raises(PartitionError, match="SQLite"):
        partition_events(sqlite_url)


def test_a_month_knows_its_neighbours() -> None:
    december = Month(2025, 12)
    assert (december.add(1), december.add(-12)) == (Month(2026, 1), Month(2024, 12))
    assert december.partition == "events_2025_12"
    assert Month.of(december.begins_at) == december
    assert Month.of(december.begins_at - 1) == Month(2025, 11)
    assert december.ends_at == Month(2026, 1).begins_at
    assert Month(2024, 2).ends_at == Month(2024, 3).begins_at


@pytest.mark.parametrize("year", [1, 1000, 2999, 3000, 9999])
def test_a_month_of_any_year_is_one(year: int) -> None:
    month = Month(year, 12)
    assert is_of_partitions(month.partition)
    assert is_of_partitions(f"{month.partition}_pkey")
    assert month.bounds == f"FROM ({month.begins_at}) TO ({month.begins_at + 31 * DAY})"


@pytest.mark.parametrize("name", [None, "events", "events_1", "events_2026_backup"])
def test_another_table_is_not_of_the_partitions(name: str | None) -> None:
    assert not is_of_partitions(name)


def test_the_last_month_of_all_is_a_table(migrated_postgresql_url: str) -> None:
    last = Month(9999, 12)
    assert add(migrated_postgresql_url, event(0, at=last.ends_at - 1)) == 1
    assert partition_events(migrated_postgresql_url) == 1
    assert count(migrated_postgresql_url, last.partition) == 1
    check(migrated_postgresql_url)
