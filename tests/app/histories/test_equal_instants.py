"""Events of one instant are a set: stored, inline or both, each counts once and in one order."""

from collections.abc import Iterator
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from sqlalchemy import Engine
from sqlalchemy.orm import Session

from app.db.engine import WRITES, open_engine
from app.db.events import EventRepository, EventRow
from app.http.types import format_instant
from app.settings import Settings
from migrations.run import upgrade
from model.history import Event, sort_events
from tests.app.client import Client, running
from tests.app.tiny_bundle import FIRST_AT, ITEM_IDS

# Texts whose order differs by locale, by case and between UTF-8 and UTF-16.
texts = st.sampled_from(["a", "B", "b", "é", "e", "Z", "_", "a b", "ab", "ﬀ", "🦊", "10", "9"])
events = st.lists(st.builds(Event, texts, st.integers(0, 3), texts), max_size=20)
arrivals = st.lists(st.integers(0, 50), max_size=6)


@pytest.fixture(scope="module")
def engines(
    postgresql_server: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Engine]]:
    """A migrated database of each kind; the examples are of different users."""
    sqlite = tmp_path_factory.mktemp("histories") / "kairos.db"
    urls = {"sqlite": f"sqlite:///{sqlite}", "postgresql": postgresql_server}
    for url in urls.values():
        upgrade(url)
    opened = {kind: open_engine(url).execution_options(**WRITES) for kind, url in urls.items()}
    yield opened
    for engine in opened.values():
        engine.dispose()


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_stored_history_is_read_in_the_order_of_a_query(
    engines: dict[str, Engine], kind: str
) -> None:
    @hypothesis_settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
    @given(events, arrivals, st.integers(1, 12))
    def check(happened: list[Event], again: list[int], most: int) -> None:
        repeated = [happened[index % len(happened)] for index in again if happened]
        user_id = str(uuid4())
        with Session(engines[kind]) as session, session.begin():
            repository = EventRepository(session)
            repository.add([to_row(user_id, event) for event in (*happened, *repeated)])
            read = repository.read_history(user_id, 2, most)
        past = [event for event in happened if event.at <= 2]
        assert tuple(read) == sort_events(past)[-most:]

    check()


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_histories_of_several_instants_have_what_each_one_has(
    engines: dict[str, Engine], kind: str
) -> None:
    @hypothesis_settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
    @given(events, st.lists(st.integers(-1, 4), max_size=4), st.integers(1, 6))
    def check(happened: list[Event], query_times: list[int], most: int) -> None:
        user_id = str(uuid4())
        with Session(engines[kind]) as session, session.begin():
            repository = EventRepository(session)
            repository.add([to_row(user_id, event) for event in happened])
            read = repository.read_histories(user_id, query_times, most)
            for query_time in query_times:
                expected = repository.read_history(user_id, query_time, most)
                past = [event for event in read if event.at <= query_time]
                assert past[len(past) - len(expected) :] == expected
        assert tuple(read) == sort_events(read)

    check()


def to_row(user_id: str, event: Event) -> EventRow:
    """Every row has an id of its own, as an import gives equal rows of a file."""
    return EventRow(
        str(uuid4()), user_id, event.item_id, str(event.action), event.at, None, None, None, 0
    )


@pytest.fixture
def service(settings: Settings, migrated_database_url: str) -> Iterator[Client]:
    """A service on each kind of database, whose histories are shorter than those of the tests."""
    changed = {"database_url": migrated_database_url, "max_history": 10}
    with running(settings.model_copy(update=changed)) as client:
        yield client


BASKET = [
    {"item_id": item_id, "action": "view", "timestamp": format_instant(FIRST_AT)}
    for item_id in ITEM_IDS[:10]
]


def recommend(client: Client, **source: object) -> dict[str, object]:
    body = {"query_time": format_instant(FIRST_AT + 1), "n": 20, "explain": "attention", **source}
    response = client.post("/v1/recommendations", body)
    assert response.status_code == 200, response.text
    answer: dict[str, object] = response.json()
    del answer["recommendation_id"]
    return answer


def store(client: Client, *events: dict[str, str]) -> str:
    """Store events of a new user, each with an id of its own; returns the user's id."""
    user_id = str(uuid4())
    sent = [{**event, "user_id": user_id, "event_id": str(uuid4())} for event in events]
    response = client.post("/v1/events", {"events": sent})
    assert response.json()["accepted"] == len(events)
    return user_id


def test_a_reversed_basket_gives_the_same_answer(service: Client) -> None:
    expected = recommend(service, history=BASKET)
    assert recommend(service, history=BASKET[::-1]) == expected
    assert recommend(service, user_id=store(service, *BASKET)) == expected
    assert recommend(service, user_id=store(service, *BASKET[::-1])) == expected


def test_stored_duplicates_count_once_as_inline_ones_do(service: Client) -> None:
    expected = recommend(service, history=BASKET[:7])
    assert expected["history_used"] == 7
    assert recommend(service, history=BASKET[:7] + BASKET[:3]) == expected
    user_id = store(service, *BASKET[:7], *BASKET[:3], *BASKET[:3])
    assert recommend(service, user_id=user_id) == expected
    assert recommend(service, user_id=user_id, history=BASKET[4:7], merge=True) == expected


def test_a_merged_basket_equals_the_whole_one(service: Client) -> None:
    expected = recommend(service, history=BASKET)
    for cut in (3, 7):
        user_id = store(service, *BASKET[cut:][::-1])
        assert recommend(service, user_id=user_id, history=BASKET[:cut], merge=True) == expected
