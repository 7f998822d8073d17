"""Transactions that add some of the same events wait for each other, but never in a circle."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import polars as pl
import psycopg
import pytest
from sqlalchemy import Engine
from sqlalchemy.orm import Session

from app.db.engine import WRITES, open_engine
from app.db.events import EventRepository, EventRow
from app.imports import import_events
from tests.processes import eventually
from tests.tiny import event_log

AT = 1_767_225_600_000_000
WAITING = (
    "SELECT count(*) FROM pg_stat_activity "
    "WHERE datname = current_database() AND wait_event_type = 'Lock'"
)
HOLD = (
    "INSERT INTO events (event_id, user_id, item_id, action, at, received_at) "
    "VALUES (%s, 'v', 'i', 'view', 0, 0)"
)
PATIENCE_SECONDS = 60


@pytest.fixture
def url(migrated_postgresql_url: str) -> str:
    """A database that does not resolve deadlocks within the test."""
    with psycopg.connect(migrated_postgresql_url, autocommit=True) as owner:
        owner.execute(f"ALTER DATABASE {owner.info.dbname} SET deadlock_timeout = '10min'")
        owner.execute(f"ALTER DATABASE {owner.info.dbname} SET statement_timeout = '50s'")
    return migrated_postgresql_url


@pytest.fixture
def engine(url: str) -> Iterator[Engine]:
    engine = open_engine(url, connections=4)
    yield engine.execution_options(**WRITES)
    engine.dispose()


def row(event_id: str, recommendation_id: str | None = None) -> EventRow:
    return EventRow(event_id, "u", "i", "view", AT, None, recommendation_id, None, AT)


def add(engine: Engine, *event_ids: str) -> int:
    """Add events, and return how many were new."""
    with Session(engine) as session, session.begin():
        return len(EventRepository(session).add([row(event_id) for event_id in event_ids]).new)


def import_(url: str, *event_ids: str) -> int:
    """Import events, and return how many were new."""
    table = event_log([("u", "i", AT)] * len(event_ids), action="view")
    return import_events(url, table.with_columns(event_id=pl.Series(event_ids))).stored


@contextmanager
def held(url: str, event_id: str) -> Iterator[None]:
    """A transaction that inserts an event first, and is undone at the end."""
    with psycopg.connect(url) as other:
        other.execute(HOLD, [event_id])
        yield
        other.rollback()


def wait_until_waiting(url: str, transactions: int) -> None:
    with psycopg.connect(url, autocommit=True) as observer:
        eventually(lambda: observer.execute(WAITING).fetchone() == (transactions,))


def test_batches_in_opposite_orders_do_not_deadlock(url: str, engine: Engine) -> None:
    with ThreadPoolExecutor(2) as threads:
        with held(url, "m"):
            # In these orders, each would hold what the other needs after "m".
            first = threads.submit(add, engine, "z", "m", "a")
            second = threads.submit(add, engine, "a", "m", "z")
            wait_until_waiting(url, 2)
        assert sorted([first.result(PATIENCE_SECONDS), second.result(PATIENCE_SECONDS)]) == [0, 3]


def test_an_import_and_a_batch_do_not_deadlock(url: str, engine: Engine) -> None:
    with ThreadPoolExecutor(2) as threads:
        with held(url, "m"):
            first = threads.submit(import_, url, "z", "m", "a")
            second = threads.submit(add, engine, "a", "m", "z")
            wait_until_waiting(url, 2)
        assert sorted([first.result(PATIENCE_SECONDS), second.result(PATIENCE_SECONDS)]) == [0, 3]


def test_who_waits_to_count_clicks_holds_no_event(url: str, engine: Engine) -> None:
    """As an import does, which inserts in several statements, beside a batch of a request."""
    with (
        ThreadPoolExecutor(1) as threads,
        Session(engine) as session,
        session.begin(),
    ):
        events = EventRepository(session)
        events.add([row("a", "shown")])

        def click_another() -> int:
            with Session(engine) as other, other.begin():
                return len(EventRepository(other).add([row("b", "shown")]).new)

        waiting = threads.submit(click_another)
        wait_until_waiting(url, 1)
        assert len(events.add([row("b", "shown")]).new) == 1
        session.commit()
        assert waiting.result(PATIENCE_SECONDS) == 0
