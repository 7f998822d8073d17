"""Training reads the tables that the service writes."""

from sqlalchemy.orm import Session

from app.db.engine import open_engine
from app.db.tables import StoredEvent, StoredItem
from migrations import run
from model.clock import to_datetime
from training.data.sources import read_events, read_items


def stored(event_id: str, at: int, value: float | None = None) -> StoredEvent:
    return StoredEvent(
        event_id=event_id,
        user_id="ü",
        item_id=f"item of {event_id}",
        action="view",
        at=at,
        value=value,
        received_at=0,
    )


def store(database_url: str, *rows: StoredEvent | StoredItem) -> None:
    run.upgrade(database_url)
    engine = open_engine(database_url)
    with Session(engine) as session, session.begin():
        for row in rows:
            session.add(row)
            session.flush()  # one by one, to fix the order of arrival
    engine.dispose()


def test_training_reads_the_events_the_service_stored(database_url: str) -> None:
    store(database_url, stored("b", 1_000_001, 2.5), stored("a", 1_000_001), stored("later", 9**15))
    assert read_events(database_url, until=1_000_001).rows() == [
        ("ü", "item of b", to_datetime(1_000_001), "view", 2.5),
        ("ü", "item of a", to_datetime(1_000_001), "view", None),
    ]


def test_training_reads_the_items_the_service_stored(database_url: str) -> None:
    lamp = StoredItem(item_id="lamp", title="A lamp", categories=["home", "light"], updated_at=0)
    bare = StoredItem(item_id="bare", title=None, categories=[], updated_at=0)
    store(database_url, lamp, bare)
    assert read_items(database_url).rows() == [
        ("bare", None, []),
        ("lamp", "A lamp", ["home", "light"]),
    ]


def test_training_finds_nothing_in_a_new_database(database_url: str) -> None:
    store(database_url)
    assert read_events(database_url).is_empty()
    assert read_items(database_url).is_empty()
