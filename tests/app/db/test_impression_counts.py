"""Counts of impressions and clicks: equal to a recount after any sequence of writes."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, text
from sqlalchemy.orm import Session

from app.backups import postgresql
from app.db.database import Database
from app.db.engine import WRITES, open_engine
from app.db.erasures import ErasureRepository
from app.db.events import EventRepository, EventRow
from app.models.repository import ClickRepository
from app.recommendations.repository import ImpressionRepository
from app.serving.impressions import Impression
from migrations import run
from model.clock import MICROSECONDS_PER_DAY
from tests.app.db.steps import count_steps

DAY = MICROSECONDS_PER_DAY
ITEMS = ("i1", "i/2", "ü3")
USERS = ("u", "v")


@pytest.fixture
def url(database_url: str) -> str:
    """A migrated database of each kind."""
    run.upgrade(database_url)
    return database_url


@pytest.fixture
def engine(url: str) -> Iterator[Engine]:
    """The database, for transactions that write."""
    engine = open_engine(url, connections=8)
    yield engine.execution_options(**WRITES)
    engine.dispose()


def impression(
    recommendation_id: str, user_id: str | None = "u", at: int = DAY, version: str = "v1"
) -> Impression:
    return Impression(recommendation_id, user_id, version, at, None, ITEMS[:2])


def click(
    recommendation_id: str, user_id: str = "u", item_id: str = "i1", event_id: str = "e"
) -> EventRow:
    return EventRow(event_id, user_id, item_id, "click", DAY, None, recommendation_id, None, DAY)


def show(engine: Engine, *impressions: Impression) -> tuple[str, ...]:
    with Session(engine) as session, session.begin():
        return ImpressionRepository(session).add(impressions)


def send(engine: Engine, *events: EventRow) -> tuple[str, ...]:
    with Session(engine) as session, session.begin():
        return EventRepository(session).add(events).clicked_versions


def erase(engine: Engine, user_id: str) -> None:
    with Session(engine) as session, session.begin():
        ErasureRepository(session).erase(user_id, 1, actor="nobody")


def read_counts(engine: Engine) -> dict[tuple[str, int], tuple[int, int]]:
    with engine.connect() as connection:
        rows = connection.execute(text("SELECT * FROM impression_counts")).mappings().all()
    return {(row["model_version"], row["day"]): (row["shown"], row["clicked"]) for row in rows}


def recount(engine: Engine) -> dict[tuple[str, int], tuple[int, int]]:
    """Count the stored rows in Python."""
    with engine.connect() as connection:
        question = "SELECT recommendation_id, model_version, at, user_id FROM recommendations"
        shown = connection.execute(text(question)).all()
        question = "SELECT recommendation_id, user_id, item_id FROM events"
        events = connection.execute(text(question)).all()
    counts: dict[tuple[str, int], tuple[int, int]] = {}
    for recommendation_id, version, at, user_id in shown:
        is_clicked = any(
            event.recommendation_id == recommendation_id
            and event.item_id in ITEMS[:2]
            and user_id in (None, event.user_id)
            for event in events
        )
        before, clicked = counts.get((version, at // DAY), (0, 0))
        counts[version, at // DAY] = (before + 1, clicked + is_clicked)
    return counts


def test_an_impression_counts_on_its_day_for_its_version(engine: Engine) -> None:
    show(engine, impression("a"), impression("b"), impression("c", at=2 * DAY))
    show(engine, impression("d", version="v2"), impression("a"))
    assert read_counts(engine) == {("v1", 1): (2, 0), ("v1", 2): (1, 0), ("v2", 1): (1, 0)}


def test_an_impression_is_clicked_once(engine: Engine) -> None:
    show(engine, impression("a"), impression("b"))
    first, again = click("a"), click("a", event_id="e2", item_id="i/2")
    assert send(engine, first, first, again) == ("v1", "v1")
    assert send(engine, first, click("a", event_id="e3")) == ("v1",)
    assert read_counts(engine) == {("v1", 1): (2, 1)}


def test_only_the_user_shown_can_click(engine: Engine) -> None:
    show(engine, impression("a"), impression("b", user_id=None))
    assert send(engine, click("a", user_id="v"), click("b", user_id="v", event_id="e2")) == ("v1",)
    assert read_counts(engine) == {("v1", 1): (2, 1)}


def test_only_items_that_were_shown_can_be_clicked(engine: Engine) -> None:
    show(engine, impression("a"))
    assert send(engine, click("a", item_id=ITEMS[2])) == ()
    assert read_counts(engine) == {("v1", 1): (1, 0)}


def test_a_click_that_arrives_before_its_impression_counts(engine: Engine) -> None:
    assert send(engine, click("a"), click("b", user_id="v", event_id="e2")) == ()
    assert show(engine, impression("a"), impression("b")) == ("v1",)
    assert read_counts(engine) == {("v1", 1): (2, 1)}


def test_erasing_a_user_takes_the_user_s_part_of_the_counts(engine: Engine) -> None:
    show(engine, impression("a"), impression("b", user_id="v"), impression("c", user_id=None))
    send(engine, click("a"), click("b", "v", event_id="e2"), click("c", event_id="e3"))
    erase(engine, "u")
    assert read_counts(engine) == {("v1", 1): (2, 1)}
    with engine.connect() as connection:
        left = "SELECT recommendation_id FROM recommendations WHERE clicked_at IS NOT NULL"
        assert connection.execute(text(left)).scalars().all() == ["b"]


def test_another_s_click_on_an_anonymous_impression_stays(engine: Engine) -> None:
    show(engine, impression("a", user_id=None))
    send(engine, click("a"), click("a", "v", event_id="e2"))
    erase(engine, "u")
    assert read_counts(engine) == {("v1", 1): (1, 1)}


def test_a_click_before_the_end_of_an_erasure_is_found_again(engine: Engine) -> None:
    show(engine, impression("a", user_id=None), impression("b", user_id=None))
    send(engine, click("a"), click("a", "v", event_id="e2"), click("b", event_id="e3"))
    with Session(engine) as session, session.begin():
        deleted = ErasureRepository(session).delete_slice("u", DAY, most=3)
        assert deleted == (2, True)
    assert read_counts(engine) == {("v1", 1): (2, 1)}


def test_erasing_costs_as_much_as_there_are_events(tmp_path: Path) -> None:
    """Also if all of them name one impression that somebody else clicked."""

    def count_steps_of_erasing(events: int) -> int:
        url = f"sqlite:///{tmp_path / str(events)}.db"
        run.upgrade(url)
        engine = open_engine(url).execution_options(**WRITES)
        show(engine, impression("a", user_id=None))
        others = (click("a", item_id="other", event_id=f"e{each}") for each in range(events))
        send(engine, *others, click("a", "v", event_id="last"))
        engine.dispose()
        return count_steps(
            engine, lambda session: ErasureRepository(session).erase("u", DAY, actor="nobody")
        )

    assert count_steps_of_erasing(2_000) < 15 * count_steps_of_erasing(200)


def test_expired_impressions_leave_the_counts_in_slices(engine: Engine) -> None:
    show(engine, *(impression(str(number), at=number) for number in range(5)), impression("b"))
    send(engine, click("0"))
    deleted = []
    for _ in range(4):
        with Session(engine) as session, session.begin():
            deleted.append(ImpressionRepository(session).delete_before(5, most=2))
    assert deleted == [2, 2, 1, 0]
    assert read_counts(engine) == {("v1", 1): (1, 0)}


def test_impressions_from_before_the_counts_are_counted(database_url: str) -> None:
    run.upgrade(database_url, "0004")
    engine = open_engine(database_url).execution_options(**WRITES)
    with engine.begin() as connection:
        for number in range(5):
            connection.execute(
                text(
                    "INSERT INTO recommendations (recommendation_id, user_id, model_version, at, "
                    "item_ids) VALUES (:id, 'u', :version, :at, '[\"i1\"]')"
                ),
                {"id": str(number), "version": f"v{number % 2}", "at": number * DAY},
            )
        event = (
            "INSERT INTO events (event_id, user_id, item_id, action, at, recommendation_id, "
            "received_at) VALUES (:id, 'u', :item, 'click', 1, :id, 1)"
        )
        connection.execute(text(event), {"id": "1", "item": "i1"})
        connection.execute(text(event), {"id": "2", "item": "i/2"})
    run.upgrade(database_url)
    show(engine, impression("new", version="v3"))
    with Session(engine) as session:
        clicks = ClickRepository(session)
        assert (clicks.count("v1"), clicks.count("v3")) == (None, (1, 0))
    counted = []
    for _ in range(4):
        with Session(engine) as session, session.begin():
            counted.append(ImpressionRepository(session).count_uncounted(2))
    assert counted == [2, 2, 1, 0]
    with Session(engine) as session:
        clicks = ClickRepository(session)
        assert (clicks.count("v0"), clicks.count("v1")) == ((3, 0), (2, 1))
    engine.dispose()


def test_a_restored_backup_has_the_counts_of_its_original(
    migrated_postgresql_url: str, postgresql_url: str, tmp_path: Path
) -> None:
    tables = ["impression_counts", "events", "recommendations"]
    original = open_engine(migrated_postgresql_url).execution_options(**WRITES)
    show(original, impression("a"), impression("b"))
    send(original, click("a"))
    postgresql.copy_out(migrated_postgresql_url, tables, tmp_path)
    original.dispose()
    run.upgrade(postgresql_url)
    postgresql.copy_in(postgresql_url, tables, tmp_path)
    restored = open_engine(postgresql_url).execution_options(**WRITES)
    assert read_counts(restored) == {("v1", 1): (2, 1)}
    show(restored, impression("c"))
    assert read_counts(restored) == {("v1", 1): (3, 1)}
    restored.dispose()


ids = st.sampled_from("abcdef")
days = st.integers(1, 3).map(DAY.__mul__)
versions = st.sampled_from(("v1", "v2"))
events = st.builds(
    click, ids, st.sampled_from(USERS), st.sampled_from(ITEMS), event_id=st.sampled_from("123456")
)
writes = st.one_of(
    st.tuples(
        st.just("show"),
        st.lists(
            st.builds(impression, ids, st.sampled_from((*USERS, None)), days, versions),
            max_size=4,
        ),
    ),
    st.tuples(st.just("send"), st.lists(events, max_size=4)),
    st.tuples(st.just("erase"), st.sampled_from(USERS)),
    st.tuples(st.just("expire"), days),
)


def write(engine: Engine, kind: str, value: Any) -> None:
    if kind == "show":
        show(engine, *value)
    elif kind == "send":
        send(engine, *value)
    elif kind == "erase":
        erase(engine, value)
    else:
        with Session(engine) as session, session.begin():
            ImpressionRepository(session).delete_before(value, most=3)


@settings(
    max_examples=settings().max_examples // 2,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(sequence=st.lists(writes, max_size=12))
def test_counts_equal_a_recount_after_any_writes(
    engine: Engine, sequence: list[tuple[str, Any]]
) -> None:
    with engine.begin() as connection:
        for table in ("events", "recommendations", "erased_users"):
            connection.execute(text(f"DELETE FROM {table}"))
    for kind, value in sequence:
        write(engine, kind, value)
        assert read_counts(engine) == recount(engine)


def test_concurrent_clicks_are_neither_lost_nor_doubled(url: str, engine: Engine) -> None:
    """Clicks race with their impressions, with each other and with a sweep of expired rows."""
    database = Database(url, threads=8, queue=100, timeout_seconds=60)
    failures: list[BaseException] = []

    def run_all(works: list[Any]) -> None:
        try:
            for work in works:
                database.write_blocking(work)
        except BaseException as error:
            failures.append(error)

    def showing(first: int) -> list[Any]:
        batches = [
            [impression(f"{n}", version=f"v{n % 3}", at=(n % 2 + 1) * DAY) for n in range(i, i + 5)]
            for i in range(first, first + 40, 5)
        ]
        return [
            lambda session, batch=batch: ImpressionRepository(session).add(batch)
            for batch in batches
        ]

    def clicking(writer: int, order: int) -> list[Any]:
        numbers = list(range(80))[::order]
        batches = [
            [click(f"{n}", event_id=f"{writer}-{n}") for n in numbers[i : i + 8]]
            for i in range(0, 80, 8)
        ]
        return [
            lambda session, batch=batch: EventRepository(session).add(batch) for batch in batches
        ]

    def expiring() -> list[Any]:
        return [lambda session: ImpressionRepository(session).delete_before(2 * DAY, 3)] * 20

    works = [showing(0), showing(40), clicking(0, 1), clicking(1, -1), clicking(2, 3), expiring()]
    threads = [threading.Thread(target=run_all, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    database.close()
    assert failures == []
    assert read_counts(engine) == recount(engine)
    assert sum(clicked for _, clicked in read_counts(engine).values()) > 0
