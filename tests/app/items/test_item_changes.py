"""Processes follow each other's changes of items by the numbers that the database gives them."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import Engine, event, text
from sqlalchemy.orm import Session

from app.db.engine import WRITES, open_engine
from app.errors import DatabaseUnavailableError
from app.items.repository import ItemRepository, ItemRow
from app.items.service import refresh_item_overlay
from app.serving.item_overlay import ItemOverlay
from app.settings import Settings
from migrations.run import upgrade
from model.clock import MICROSECONDS_PER_SECOND, now
from tests.app.client import Client, running

HOUR = 3600 * MICROSECONDS_PER_SECOND
WRITERS, ROUNDS = 4, 25


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    """A migrated database of each kind, as another process uses it."""
    upgrade(database_url)
    engine = open_engine(database_url, connections=WRITERS + 1).execution_options(**WRITES)
    yield engine
    engine.dispose()


@pytest.fixture
def service(settings: Settings, engine: Engine, database_url: str) -> Iterator[Client]:
    """A service on that database, which reads items only when a test calls `refresh`."""
    changed = {"database_url": database_url, "poll_interval_seconds": 3600.0}
    with running(settings.model_copy(update=changed)) as client:
        yield client


def put(engine: Engine, *item_ids: str, title: str = "Stored", at: int | None = None) -> None:
    rows = [ItemRow(item_id, title, [], now() if at is None else at) for item_id in item_ids]
    with Session(engine) as session, session.begin():
        ItemRepository(session).put(rows)


def delete(engine: Engine, item_id: str, at: int) -> None:
    with Session(engine) as session, session.begin():
        assert ItemRepository(session).delete(item_id, at)


def refresh(client: Client) -> ItemOverlay:
    context = client.app.state.context
    client.portal.call(refresh_item_overlay, context)
    overlay: ItemOverlay = context.item_overlay
    return overlay


def read_titles(client: Client) -> dict[str, str | None]:
    """Refresh, and read the titles of the items that may be recommended, by id."""
    predictor = client.app.state.context.model_manager.require_current()
    view = refresh(client).get_view(predictor.version, predictor.catalog)
    allowed = view.select_allowed(0)
    rows = range(1, len(predictor.catalog) + 1)
    return {
        predictor.catalog.item_id(row): view.title(row)
        for row in rows
        if allowed is None or allowed[row]
    }


def test_changes_by_a_slow_clock_are_followed(service: Client, engine: Engine) -> None:
    put(engine, "i1", "i2", title="New")
    assert read_titles(service)["i1"] == "New"
    put(engine, "i1", title="Later, by a clock that is slow", at=now() - HOUR)
    delete(engine, "i2", at=now() - HOUR)
    titles = read_titles(service)
    assert titles["i1"] == "Later, by a clock that is slow"
    assert "i2" not in titles


def test_changes_by_the_release_before_are_followed(service: Client, engine: Engine) -> None:
    put(engine, "i1", "i2")
    refresh(service)
    with engine.begin() as connection:
        connection.execute(text("UPDATE items SET title = 'Old code' WHERE item_id = 'i1'"))
        connection.execute(text("UPDATE items SET deleted_at = 1 WHERE item_id = 'i2'"))
    titles = read_titles(service)
    assert titles["i1"] == "Old code"
    assert "i2" not in titles


def test_items_without_a_number_are_in_the_first_read(
    settings: Settings, engine: Engine, database_url: str
) -> None:
    put(engine, "i1", title="Stored before the migration")
    with engine.begin() as connection:
        trigger = "DISABLE TRIGGER number_items"
        if engine.dialect.name == "postgresql":
            connection.execute(text(f"ALTER TABLE items {trigger}"))
        # On SQLite, the trigger does not fire for this column.
        connection.execute(text("UPDATE items SET change_number = NULL"))
        connection.execute(text("DELETE FROM change_numbers"))
        if engine.dialect.name == "postgresql":
            connection.execute(text(f"ALTER TABLE items {trigger.replace('DISABLE', 'ENABLE')}"))
    with running(settings.model_copy(update={"database_url": database_url})) as client:
        assert read_titles(client)["i1"] == "Stored before the migration"


def test_a_restored_database_is_read_again(service: Client, engine: Engine) -> None:
    put(engine, "i1", title="Backed up")
    put(engine, "i2", title="After the backup")
    assert read_titles(service)["i2"] == "After the backup"
    with engine.begin() as connection:
        connection.execute(text("DELETE FROM items WHERE item_id = 'i2'"))
        connection.execute(text("UPDATE change_numbers SET last = 1"))
    titles = read_titles(service)
    assert titles["i1"] == "Backed up"
    assert titles["i2"] != "After the backup"


def test_a_restored_table_may_have_larger_numbers(
    settings: Settings, migrated_postgresql_url: str
) -> None:
    engine = open_engine(migrated_postgresql_url, connections=1)
    with running(settings.model_copy(update={"database_url": migrated_postgresql_url})) as client:
        put(engine, "i1", title="After the backup")
        assert read_titles(client)["i1"] == "After the backup"
        with engine.begin() as connection:
            connection.execute(text("CREATE TABLE restored (LIKE change_numbers INCLUDING ALL)"))
            connection.execute(text("INSERT INTO restored VALUES ('items', 1000)"))
            connection.execute(text("DROP TABLE change_numbers"))
            connection.execute(text("ALTER TABLE restored RENAME TO change_numbers"))
            connection.execute(text("ALTER TABLE items DISABLE TRIGGER number_items"))
            connection.execute(text("DELETE FROM items"))
        assert read_titles(client)["i1"] != "After the backup"
    engine.dispose()


def test_an_idle_refresh_reads_one_row(service: Client, engine: Engine) -> None:
    put(engine, "i1", "i2", "i3")
    refresh(service)
    statements: list[str] = []
    pool = service.app.state.context.database._reading
    event.listen(pool, "before_cursor_execute", lambda *call: statements.append(call[2]))
    refresh(service)
    reads = [statement for statement in statements if "items" in statement or "SELECT" in statement]
    assert len(reads) == 1
    assert "change_numbers" in reads[0]


def test_a_number_is_visible_only_after_the_smaller_ones(migrated_postgresql_url: str) -> None:
    engine = open_engine(migrated_postgresql_url, connections=2)
    with Session(engine) as first, first.begin():
        ItemRepository(first).put([ItemRow("a", None, [], now())])
        with Session(engine) as second, second.begin():
            second.execute(text("SET LOCAL lock_timeout = 50"))
            with pytest.raises(DatabaseUnavailableError, match="LockNotAvailable"):
                ItemRepository(second).put([ItemRow("b", None, [], now())])
            second.rollback()
    put(engine, "b")
    with Session(engine) as session:
        numbers = session.execute(
            text("SELECT item_id FROM items ORDER BY change_number")
        ).scalars()
        assert list(numbers) == ["a", "b"]
    engine.dispose()


def test_writers_of_the_same_items_never_deadlock(engine: Engine) -> None:
    ids = [f"item{number}" for number in range(20)]
    put(engine, *ids)
    start = threading.Barrier(WRITERS)

    def write(writer: int) -> None:
        start.wait()
        for number in range(ROUNDS):
            chosen = ids if writer % 2 else ids[::-1]
            with Session(engine) as session, session.begin():
                items = ItemRepository(session)
                if (number + writer // 2) % 2:
                    items.put([ItemRow(item_id, None, [], now()) for item_id in chosen])
                else:
                    for item_id in chosen[:3]:
                        items.delete(item_id, now())

    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(write, range(WRITERS)))
