"""A running service counts what was chosen since the training, without retraining."""

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from app.errors import DatabaseUnavailableError
from app.popularity.service import Counted, _to_rows, refresh_popularity
from app.popularity.tally import Tally
from app.settings import Settings
from model.popularity import CountedEvents
from model.wide import WideConfig
from tests.app import tiny_bundle
from tests.app.client import Client, recommend, running
from tests.processes import eventually

DAY = 86_400
END = tiny_bundle.LAST_AT // 1_000_000
HISTORY = [{"item_id": "i1", "timestamp": END - 3 * DAY}]


@pytest.fixture
def settings(settings: Settings, tmp_path: Path) -> Settings:
    """Settings of a service with a wide model, which counts often."""
    store = tmp_path / "wide"
    tiny_bundle.publish(store, seed=3, wide=WideConfig(), ignored_actions=("return",))
    return settings.model_copy(update={"bundle_store": store, "popularity_interval_seconds": 0.05})


def rank(client: Client, at: int = END + 3 * DAY) -> dict[str, float]:
    """The scores of all items for one history, best first."""
    request = {"history": HISTORY, "n": 20, "query_time": at, "exclude_seen": False}
    response = client.post("/v1/recommendations", request)
    assert response.status_code == 200, response.text
    return {item["item_id"]: item["score"] for item in response.json()["items"]}


def choose(client: Client, item_id: str, times: int, action: str = "buy") -> None:
    """Let so many users choose an item two days after the training."""
    events = [
        {
            "user_id": f"u{n}",
            "item_id": item_id,
            "action": action,
            "timestamp": END + 2 * DAY + n,
        }
        for n in range(times)
    ]
    assert client.post("/v1/events", {"events": events}).json()["accepted"] == times


@pytest.fixture
def client(settings: Settings, migrated_database_url: str) -> Any:
    """A service on each kind of database."""
    with running(settings.model_copy(update={"database_url": migrated_database_url})) as client:
        yield client


def test_what_sold_since_the_training_ranks_higher(client: Client) -> None:
    before = rank(client)
    least = list(before)[-1]
    choose(client, least, 300)
    eventually(lambda: rank(client)[least] > before[least] + 0.5)
    assert list(rank(client)).index(least) < len(before) // 2


def test_users_without_a_history_get_what_sold(client: Client) -> None:
    def recommend() -> list[str]:
        answer = client.post("/v1/recommendations", {"history": [], "n": 20}).json()
        return [item["item_id"] for item in answer["items"]]

    least = recommend()[-1]
    choose(client, least, 300)
    eventually(lambda: recommend()[0] == least)


@pytest.mark.slow
def test_a_restart_and_a_second_replica_answer_the_same(
    settings: Settings, migrated_database_url: str
) -> None:
    shared = settings.model_copy(update={"database_url": migrated_database_url})
    with running(shared) as first:
        before = rank(first)
        least = list(before)[-1]
        choose(first, least, 300)
        eventually(lambda: rank(first)[least] > before[least] + 0.5)
        counted = rank(first)
        with running(shared) as second:
            eventually(lambda: rank(second) == counted)
    with running(shared) as restarted:
        eventually(lambda: rank(restarted) == counted)


def test_earlier_query_times_do_not_see_later_events(client: Client) -> None:
    before = rank(client, END - DAY)
    now = rank(client)
    choose(client, "i7", 300)
    eventually(lambda: rank(client)["i7"] > now["i7"] + 0.5)
    assert rank(client, END - DAY) == before


def test_ignored_actions_and_unknown_items_are_not_counted(client: Client) -> None:
    before = rank(client)
    choose(client, "i5", 300, action="return")
    choose(client, "unheard-of", 300)
    choose(client, "i7", 5)
    eventually(lambda: rank(client)["i7"] > before["i7"])
    assert rank(client)["i5"] < before["i5"]


def test_events_of_erased_users_are_no_longer_counted(client: Client) -> None:
    before = rank(client)
    choose(client, "i7", 5)
    eventually(lambda: rank(client)["i7"] > before["i7"])
    for n in range(5):
        assert client.request("DELETE", f"/v1/users/u{n}").status_code == 200
    eventually(lambda: rank(client) == before)


def test_counting_can_be_switched_off(settings: Settings) -> None:
    with running(settings.model_copy(update={"popularity_interval_seconds": 0.0})) as client:
        before = rank(client)
        choose(client, "i7", 300)
        time.sleep(0.3)
        assert rank(client) == before


def test_a_model_that_was_opened_again_counts_anew(settings: Settings, client: Client) -> None:
    before = rank(client)
    choose(client, "i7", 300)
    eventually(lambda: rank(client)["i7"] > before["i7"] + 0.5)
    counted = rank(client)
    first = recommend(client)["model_version"]
    other = tiny_bundle.publish(settings.bundle_store, seed=4)
    eventually(lambda: recommend(client)["model_version"] == other)
    assert client.post(f"/v1/models/{first}/activate", {"reason": None}).status_code == 200
    assert recommend(client)["model_version"] == first
    eventually(lambda: rank(client) == counted)


def test_models_count_off_the_event_loop(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[int] = []

    def note_thread(*arguments: Any) -> CountedEvents:
        threads.append(threading.get_ident())
        return _to_rows(*arguments)

    monkeypatch.setattr("app.popularity.service._to_rows", note_thread)
    settings = settings.model_copy(update={"popularity_interval_seconds": 0.0})
    with running(settings) as client:
        choose(client, "i7", 5)
        choose(client, "unheard-of", 5)
        counted: dict[str, Counted] = {}
        client.portal.call(refresh_popularity, client.app.state.context, counted)
        loop = client.portal.call(threading.get_ident)
    (known,) = counted.values()
    assert {one.item_id for one in known.tally.events} == {"i7"}
    assert len(threads) == 1
    assert loop not in threads


def test_a_count_that_failed_is_done_again_if_nothing_is_left(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the model counts the events of an erased user until others send some."""
    settings = settings.model_copy(update={"popularity_interval_seconds": 0.0})
    with running(settings) as client:
        counted: dict[str, Counted] = {}

        def refresh() -> None:
            client.portal.call(refresh_popularity, client.app.state.context, counted)

        def fail(*_: object) -> None:
            raise MemoryError

        choose(client, "i7", 1)
        refresh()
        (known,) = counted.values()
        counting = known.predictor
        assert counting is not None
        assert client.request("DELETE", "/v1/users/u0").is_success
        with monkeypatch.context() as patch:
            patch.setattr(type(counting), "count_on", fail)
            with pytest.raises(MemoryError):
                refresh()
        refresh()
    assert not known.tally
    assert known.predictor not in {None, counting}


def test_an_outage_is_one_of_the_task(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: object) -> bool:
        raise DatabaseUnavailableError("down")

    monkeypatch.setattr(Tally, "refresh", fail)
    with running(settings) as client, pytest.raises(DatabaseUnavailableError):
        client.portal.call(refresh_popularity, client.app.state.context, {})
