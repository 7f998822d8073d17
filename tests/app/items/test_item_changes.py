"""Processes follow each other's changes of items by the numbers that the database gives them."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from sqlalchemy import Engine, event, text
from sqlalchemy.orm import Session

from app.db.engine import WRITES, open_engine
from app.errors import DatabaseUnavailableError
from app.items.repository import ItemRepository, ItemRow, ItemState
from app.items.service import refresh_item_overlay
from app.serving.item_overlay import ItemOverlay
from app.settings import Settings
from migrations.run import upgrade
from model.clock import MICROSECONDS_PER_SECOND, now
from tests.app.client import Client, recommend, running
from tests.processes import eventually

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


@pytest.fixture
def unread(settings: Settings, engine: Engine, database_url: str) -> Iterator[Client]:
    """A service whose first read of the items failed; it reads again when a test refreshes."""
    changed = {"database_url": database_url, "poll_interval_seconds": 3600.0}
    with pytest.MonkeyPatch.context() as patch:
        for read in ("list_states", "list_states_by_id"):
            patch.setattr(ItemRepository, read, refuse)
        application = running(settings.model_copy(update=changed))
        client = application.__enter__()
    yield client
    application.__exit__(None, None, None)


def refuse(*_: object) -> list[ItemState]:
    raise DatabaseUnavailableError("takes too long")


class Interruption:
    """Runs changes by another process before the second page of all items is read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, change: Callable[[], None]) -> None:
        self.pages: list[list[str]] = []
        list_states = ItemRepository.list_states_by_id

        def interrupt(items: ItemRepository, after: str | None, limit: int) -> list[ItemState]:
            if len(self.pages) == 1:
                change()
            page = list_states(items, after, limit)
            self.pages.append([state.item_id for state in page])
            return page

        monkeypatch.setattr(ItemRepository, "list_states_by_id", interrupt)


def refresh_in_pages(client: Client, size: int) -> None:
    context = client.app.state.context
    client.portal.call(partial(refresh_item_overlay, context, page_size=size))


def test_changes_between_pages_are_not_missed(
    unread: Client, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(engine, "i1", "i2", "i3", "i4", "i5")

    def change() -> None:
        put(engine, "i1", title="Changed after its page")
        delete(engine, "i2", at=now())
        delete(engine, "i5", at=now())
        put(engine, "i10", "i11", "i12", title="New before the page")

    interruption = Interruption(monkeypatch, change)
    refresh_in_pages(unread, 2)
    assert interruption.pages == [["i1", "i2"], ["i3", "i4"], ["i5"], []]
    overlay = unread.app.state.context.item_overlay
    assert overlay._items["i1"].title == "Changed after its page"
    assert {key for key, item in overlay._items.items() if item.is_deleted} == {"i2", "i5"}
    assert {"i10", "i11", "i12"} <= overlay._items.keys()
    titles = read_titles(unread)
    assert titles["i1"] == "Changed after its page"
    assert not {"i2", "i5"} & titles.keys()


def test_many_changes_are_read_in_pages(service: Client, engine: Engine) -> None:
    put(engine, "i1")
    refresh(service)
    put(engine, *(f"i{number}" for number in range(1, 6)))
    delete(engine, "i3", at=now())
    begun: list[object] = []
    event.listen(service.app.state.context.database._reading, "begin", begun.append)
    refresh_in_pages(service, 2)
    assert len(begun) == 4  # the counter, then five items
    assert "i3" not in read_titles(service)
    assert read_titles(service)["i5"] == "Stored"


def test_a_restore_between_pages_begins_the_read_again(
    unread: Client, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(engine, "i1", "i2", "i3", title="Before the restore")

    def restore() -> None:
        with engine.begin() as connection:
            connection.execute(text("DELETE FROM items"))
            connection.execute(text("UPDATE change_numbers SET last = 1"))

    Interruption(monkeypatch, restore)
    with pytest.raises(DatabaseUnavailableError, match="one database"):
        refresh_in_pages(unread, 1)
    assert unread.app.state.context.item_overlay.last_change is None
    assert "Before the restore" not in read_titles(unread).values()


def test_a_process_that_never_read_the_items_is_not_ready(unread: Client) -> None:
    ready = unread.get("/health/ready")
    assert ready.status_code == 503
    assert ready.json()["database"] == "ok"
    assert ready.json()["tasks"].startswith("items: ")
    recommend(unread)


def test_the_items_are_read_again_until_that_succeeds(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        for read in ("list_states", "list_states_by_id"):
            patch.setattr(ItemRepository, read, refuse)
        with running(settings) as client:
            assert client.get("/health/ready").status_code == 503
            patch.undo()
            eventually(lambda: client.get("/health/ready").status_code == 200)


def test_an_item_is_stored_even_if_it_cannot_be_followed(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ItemRepository, "list_states_by_change", refuse)
    stored = client.put("/v1/items", {"items": [{"item_id": "i1", "title": "Stored"}]})
    assert stored.status_code == 200
    assert client.get("/v1/items/i1").json()["title"] == "Stored"
    assert client.request("DELETE", "/v1/items/i1").status_code == 204


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


@pytest.mark.slow
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
