"""Counts kept up to date by reading what was added equal a count of everything."""

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from app.db.database import Database
from app.db.erasures import ErasureRepository
from app.db.events import EventRepository, EventRow
from app.errors import DatabaseUnavailableError
from app.popularity.repository import ItemEvents, PopularityRepository, Selection
from app.popularity.tally import Tally
from migrations import run

SELECTION = Selection(since=10, width=5, origin=0, ignored_actions=("return",))
ITEMS = frozenset("ij")


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """A migrated database of each kind."""
    run.upgrade(database_url)
    database = Database(database_url, threads=4, queue=10, timeout_seconds=60)
    yield database
    database.close()


def event(number: int, item_id: str = "i", at: int = 20, action: str = "view") -> EventRow:
    return EventRow(f"e{number}", f"u{number % 3}", item_id, action, at, None, None, None, 1)


def add(database: Database, *events: EventRow) -> None:
    database.write_blocking(lambda session: EventRepository(session).add(events))


def erase(database: Database, user_id: str, at: int) -> None:
    database.write_blocking(
        lambda session: ErasureRepository(session).erase(user_id, at, actor="nobody")
    )


def refresh(tally: Tally, database: Database) -> bool:
    return asyncio.run(tally.refresh(database, ITEMS))


def list_events(tally: Tally) -> list[ItemEvents]:
    return sorted(tally.events)


def count_all(database: Database) -> list[ItemEvents]:
    tally = Tally(SELECTION)
    refresh(tally, database)
    return list_events(tally)


def test_a_tally_counts_by_item_and_span(database: Database) -> None:
    add(database, event(1, at=9), event(2, at=10), event(3, at=14), event(4, at=15))
    add(database, event(5, "j"), event(6, action="return"))
    tally = Tally(SELECTION)
    assert refresh(tally, database)
    assert list_events(tally) == [(10, "i", 2, 14), (15, "i", 1, 15), (20, "j", 1, 20)]
    assert not refresh(tally, database)


def test_a_tally_is_counted_in_slices(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    add(database, *(event(number, at=10 + number // 4) for number in range(40)))
    whole = count_all(database)
    monkeypatch.setattr("app.popularity.tally.SLICE", 3)
    tally = Tally(SELECTION)
    refresh(tally, database)
    assert list_events(tally) == whole
    add(database, *(event(number, at=10 + number % 7) for number in range(40, 60)))
    assert refresh(tally, database)
    assert list_events(tally) == count_all(database)


def test_items_outside_the_catalog_are_not_kept(database: Database) -> None:
    add(database, event(1), event(2, "unheard-of"))
    tally = Tally(SELECTION)
    assert refresh(tally, database)
    assert list_events(tally) == [(20, "i", 1, 20)]
    add(database, event(3, "unknown"), event(4, "nowhere"))
    assert not refresh(tally, database)
    assert len(tally) == 1


def test_counts_before_a_failure_are_a_later_change(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The failed read had counted one event; those after it are of no known item."""
    monkeypatch.setattr("app.popularity.tally.SLICE", 1)
    tally = Tally(SELECTION)
    refresh(tally, database)
    add(database, event(1), event(2, "unknown"))
    count_added = PopularityRepository.count_added

    def fail_after_one(events: PopularityRepository, *arguments: Any) -> list[ItemEvents]:
        if len(tally):
            raise DatabaseUnavailableError("down")
        return count_added(events, *arguments)

    with monkeypatch.context() as failing:
        failing.setattr(PopularityRepository, "count_added", fail_after_one)
        with pytest.raises(DatabaseUnavailableError):
            refresh(tally, database)
    assert refresh(tally, database)
    assert list_events(tally) == [(20, "i", 1, 20)]


writes = st.one_of(
    st.lists(
        st.builds(
            event,
            st.integers(0, 30),
            st.sampled_from("ijx"),
            st.integers(5, 30),
            st.sampled_from(("view", "return")),
        ),
        max_size=5,
    ),
    st.sampled_from(("u0", "u1", "u2")),
)


@settings(
    max_examples=settings().max_examples // 4,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(sequence=st.lists(writes, max_size=8))
def test_a_tally_equals_a_count_of_everything(
    database: Database, sequence: list[list[EventRow] | str]
) -> None:
    """Erased rows give their ids to later ones on SQLite."""
    clear = ("events", "erased_users")
    for table in clear:
        database.write_blocking(
            lambda session, table=table: session.execute(text(f"DELETE FROM {table}"))
        )
    tally = Tally(SELECTION)
    for number, write in enumerate(sequence):
        if isinstance(write, str):
            erase(database, write, at=number + 1)
        else:
            add(database, *write)
        refresh(tally, database)
        assert list_events(tally) == count_all(database)


def test_events_of_a_slow_transaction_are_not_passed_over(postgresql_url: str) -> None:
    """Its events have smaller ids than those that another transaction commits before it."""
    run.upgrade(postgresql_url)
    database = Database(postgresql_url, threads=4, queue=10, timeout_seconds=60)
    added, committed = threading.Event(), threading.Event()

    def add_slowly() -> None:
        def write(session: object) -> None:
            EventRepository(session).add([event(1)])  # type: ignore[arg-type]
            added.set()
            assert committed.wait(60)

        database.write_blocking(write)

    slow = threading.Thread(target=add_slowly)
    slow.start()
    assert added.wait(60)
    add(database, event(2))
    tally = Tally(SELECTION)
    refreshing = threading.Thread(target=refresh, args=(tally, database))
    refreshing.start()
    committed.set()
    slow.join()
    refreshing.join()
    refresh(tally, database)
    assert list_events(tally) == [(20, "i", 2, 20)]
    database.close()
