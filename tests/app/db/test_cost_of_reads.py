"""Reads cost the same on ten times the rows, counted in steps of SQLite's virtual machine."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.orm import Session

from app.db.engine import WRITES, open_engine
from app.db.events import EventRepository
from app.health.repository import HealthRepository
from app.items.repository import ItemEventRepository
from app.models.repository import ClickRepository, ModelChangeRepository
from app.popularity.repository import PopularityRepository, Selection
from migrations.run import upgrade
from tests.app.db.steps import count_steps

Read = Callable[[Session], Any]


def count_item(session: Session) -> Any:
    events = ItemEventRepository(session)
    span = events.find_span("heavy", None, None)
    assert span is not None
    return events.count_by_day("heavy", span)


READS: dict[str, Read] = {
    "the clicks of a version": lambda session: ClickRepository(session).count("v"),
    "the first users": lambda session: EventRepository(session).list_users("", 20),
    "users of a prefix": lambda session: EventRepository(session).list_users("u1", 20),
    "users of an unknown prefix": lambda session: EventRepository(session).list_users("x", 20),
    "the users of the latest events": lambda session: EventRepository(session).list_latest_users(
        10**9, "", 20
    ),
    "the newest events of a user": lambda session: EventRepository(session).list_newest("u", 20),
    "the events of an item": count_item,
    "changes of the served models": lambda session: ModelChangeRepository(session).list_newest(20),
    "what a rollback reads": lambda session: ModelChangeRepository(session).list_activations(),
    "the popularity of what was added": lambda session: PopularityRepository(session).count_added(
        Selection(0, 60, 0, ("return",)), 1000, 1100, 10**9
    ),
    "the horizon of the events": lambda session: PopularityRepository(session).read_horizon(),
    "the newest arrival": lambda session: HealthRepository(session).read_newest_arrival(),
}


@pytest.fixture(scope="module")
def databases(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A database, and one with ten times the rows."""
    directory = tmp_path_factory.mktemp("reads")
    return fill(directory / "small.db", 2_000), fill(directory / "large.db", 20_000)


def fill(file: Path, events: int) -> str:
    url = f"sqlite:///{file}"
    upgrade(url)
    numbers = (
        "(WITH RECURSIVE count(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM count "
        f"WHERE n < {events - 1}) SELECT n FROM count)"
    )
    engine = open_engine(url)
    with engine.execution_options(**WRITES).begin() as connection:
        for statement in (
            "INSERT INTO recommendations (recommendation_id, user_id, model_version, at, item_ids)"
            f" SELECT 'r' || n, NULL, 'v', n, '[\"i1\"]' FROM {numbers}",
            "INSERT INTO events (event_id, user_id, item_id, action, at, received_at, "
            "recommendation_id) SELECT 'e' || n, CASE WHEN n % 2 THEN 'heavy' ELSE 'u' || (n % 50) "
            "END, CASE WHEN n % 3 THEN 'heavy' ELSE 'i1' END, 'view', n, n, "
            f"CASE WHEN n % 4 = 0 THEN 'r' || n END FROM {numbers}",
            "INSERT INTO model_changes (at, actor, change, version) "
            f"SELECT n, 'nobody', 'activate', 'v' || n FROM {numbers}",
        ):
            connection.execute(text(statement))
    engine.dispose()
    return url


@pytest.mark.parametrize("read", READS)
def test_a_read_costs_the_same_on_ten_times_the_rows(
    databases: tuple[str, str], read: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for bound in (
        "app.items.repository.MOST_COUNTED",
        "app.db.events.MOST_COUNTED",
        "app.db.events.LATEST_EVENTS",
        "app.models.repository.MOST_ACTIVATIONS",
    ):
        monkeypatch.setattr(bound, 20)
    small, large = (count_steps(open_engine(url), READS[read]) for url in databases)
    assert small > 0
    assert large < 1.5 * small + 20
