"""Impressions are stored after the response; clicks are attributed to model versions."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any, cast

import pytest
from sqlalchemy import Engine, text
from structlog.testing import capture_logs

from app.db.engine import open_engine
from app.errors import DatabaseUnavailableError, OverloadedError
from app.observability.metrics import Metrics
from app.recommendations.impression_writer import delete_expired_impressions
from app.serving.impressions import Impression, ImpressionBuffer
from app.settings import Settings
from model.clock import MICROSECONDS_PER_DAY, now
from tests.app import tiny_bundle
from tests.app.client import Client, recommend, running
from tests.processes import eventually

Row = dict[str, Any]


@pytest.fixture
def engine(client_on_either: Client) -> Iterator[Engine]:
    """The database beneath the service."""
    engine = open_engine(client_on_either.app.state.context.settings.database_url)
    yield engine
    engine.dispose()


@pytest.fixture
def client(client_on_either: Client) -> Client:
    """A running service, on either database in turn."""
    return client_on_either


def records(engine: Engine) -> list[Row]:
    with engine.connect() as connection:
        found = connection.execute(text("SELECT * FROM recommendations ORDER BY at"))
        return [dict(row) for row in found.mappings()]


def is_kept(engine: Engine, answer: Row) -> bool:
    return answer["recommendation_id"] in {row["recommendation_id"] for row in records(engine)}


def waiting(client: Client) -> int:
    return len(client.app.state.context.impressions)


def clicks(client: Client, version: str) -> float:
    return client.metric("kairos_recommendation_clicks_total", model_version=version)


def click(client: Client, answer: Row, item_id: str, **changed: Any) -> None:
    event = {
        "user_id": "u",
        "item_id": item_id,
        "action": "click",
        "timestamp": now() / 1e6,
        "recommendation_id": answer["recommendation_id"],
        **changed,
    }
    assert client.post("/v1/events", {"events": [event]}).json()["accepted"] == 1


@contextmanager
def away(engine: Engine) -> Iterator[None]:
    """Make the table unavailable for the time of the block."""
    with engine.begin() as connection:
        connection.execute(text("ALTER TABLE recommendations RENAME TO away"))
    yield
    with engine.begin() as connection:
        connection.execute(text("ALTER TABLE away RENAME TO recommendations"))


def test_an_impression_is_stored_as_answered(client: Client, engine: Engine) -> None:
    answer = client.post("/v1/recommendations", {"user_id": "ü", "n": 3}).json()
    eventually(lambda: len(records(engine)) == 1)
    (row,) = records(engine)
    assert row["recommendation_id"] == answer["recommendation_id"]
    assert (row["user_id"], row["fallback"]) == ("ü", "no_history")
    assert row["model_version"] == answer["model_version"]
    assert abs(row["at"] - now()) < 60_000_000
    shown = [item["item_id"] for item in answer["items"]]
    assert all(f'"{item_id}"' in str(row["item_ids"]).replace("'", '"') for item_id in shown)


def test_a_preview_is_not_stored(client: Client, engine: Engine) -> None:
    client.post("/v1/recommendations", {"user_id": "u", "n": 3, "shown": False})
    shown = client.post("/v1/recommendations", {"user_id": "u", "n": 3}).json()
    eventually(lambda: is_kept(engine, shown))
    assert len(records(engine)) == 1


def test_an_anonymous_impression_has_no_user(client: Client, engine: Engine) -> None:
    recommend(client)
    eventually(lambda: len(records(engine)) == 1)
    assert records(engine)[0]["user_id"] is None


def test_buffered_impressions_are_written_on_shutdown(
    settings: Settings, database_url: str
) -> None:
    settings = settings.model_copy(update={"database_url": database_url})
    with running(settings) as client:
        ids = {recommend(client)["recommendation_id"] for _ in range(20)}
    engine = open_engine(database_url)
    assert {row["recommendation_id"] for row in records(engine)} == ids
    engine.dispose()


def test_a_write_that_has_begun_is_finished_on_shutdown(
    settings: Settings, database_url: str
) -> None:
    """The write waits for its turn when the service ends; what it took is in no buffer."""
    settings = settings.model_copy(update={"database_url": database_url})
    with running(settings) as client:
        database = client.app.state.context.database
        write, begun = database.write, Event()

        async def write_later(work: Any) -> Any:
            begun.set()
            await asyncio.sleep(0.3)
            return await write(work)

        database.write = write_later
        ids = {recommend(client)["recommendation_id"]}
        assert begun.wait(10)
    engine = open_engine(database_url)
    assert {row["recommendation_id"] for row in records(engine)} == ids
    engine.dispose()


def test_impressions_are_written_after_the_table_is_back(client: Client, engine: Engine) -> None:
    with away(engine):
        ids = {recommend(client)["recommendation_id"] for _ in range(5)}
        eventually(lambda: waiting(client) == 5)
    eventually(lambda: {row["recommendation_id"] for row in records(engine)} == ids)
    eventually(lambda: waiting(client) == 0)
    assert client.metric("kairos_recommendation_records_dropped_total") == 0


def test_an_unexpected_failure_loses_nothing(client: Client, engine: Engine) -> None:
    database = client.app.state.context.database
    write, failures = database.write, iter([TypeError("a defect"), asyncio.CancelledError()])

    async def fail_first(work: Any) -> Any:
        for failure in failures:
            raise failure
        return await write(work)

    database.write = fail_first
    ids = {recommend(client)["recommendation_id"] for _ in range(7)}
    eventually(lambda: {row["recommendation_id"] for row in records(engine)} == ids)
    assert client.metric("kairos_recommendation_records_dropped_total") == 0


def test_a_refused_impression_does_not_stop_the_others(client: Client, engine: Engine) -> None:
    impressions = client.app.state.context.impressions
    kept = [Impression(f"kept{number}", None, "v", number, None, ("i1",)) for number in range(5)]
    # The column is NOT NULL.
    refused = replace(kept[0], recommendation_id="refused", model_version=cast(str, None))
    for impression in (*kept[:3], refused, *kept[3:]):
        client.portal.call(impressions.put, impression)
    eventually(lambda: len(records(engine)) == 5)
    assert {row["recommendation_id"] for row in records(engine)} == {f"kept{n}" for n in range(5)}
    assert client.metric("kairos_recommendation_records_dropped_total") == 1


def test_a_write_at_shutdown_is_tried_again(settings: Settings, database_url: str) -> None:
    """As on a busy machine: the queue is full, then the database takes too long."""
    settings = settings.model_copy(update={"database_url": database_url})
    failures = iter([OverloadedError("database_writes", 0), DatabaseUnavailableError("slow")])
    with running(settings) as client:
        database = client.app.state.context.database
        write = database.write

        async def refuse(_: Any) -> Any:
            raise OverloadedError("database_writes", 0)

        async def fail_first(work: Any) -> Any:
            for failure in failures:
                raise failure
            return await write(work)

        database.write = refuse
        ids = {recommend(client)["recommendation_id"] for _ in range(10)}
        database.write = fail_first
    engine = open_engine(database_url)
    assert {row["recommendation_id"] for row in records(engine)} == ids
    engine.dispose()


def test_impressions_lost_at_shutdown_are_counted_and_logged(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.recommendations.impression_writer._FINAL_WRITE_SECONDS", 0.2)

    async def refuse(_: Any) -> Any:
        raise DatabaseUnavailableError("down")

    with capture_logs() as logs:
        with running(settings) as client:
            client.app.state.context.database.write = refuse
            for _ in range(10):
                recommend(client)
        assert client.metric("kairos_recommendation_records_dropped_total") == 10
    (lost,) = (line for line in logs if line["event"] == "impressions_lost")
    assert (lost["impressions"], lost["log_level"]) == (10, "error")


def test_a_full_buffer_drops_and_counts_the_oldest(settings: Settings, database_url: str) -> None:
    changed = {"database_url": database_url, "recommendation_buffer": 3}
    with running(settings.model_copy(update=changed)) as client:
        engine = open_engine(database_url)
        with away(engine):
            ids = [recommend(client)["recommendation_id"] for _ in range(5)]
            dropped = "kairos_recommendation_records_dropped_total"
            eventually(lambda: client.metric(dropped) == 2)
        eventually(lambda: len(records(engine)) == 3)
        assert {row["recommendation_id"] for row in records(engine)} == {*ids[2:]}
        engine.dispose()


def test_a_buffer_of_size_zero_stores_nothing(settings: Settings) -> None:
    with running(settings.model_copy(update={"recommendation_buffer": 0})) as client:
        recommend(client)
        assert waiting(client) == 0
        assert client.metric("kairos_recommendation_records_dropped_total") == 0


def test_expired_impressions_are_deleted(client: Client, engine: Engine) -> None:
    days = client.app.state.context.settings.recommendation_days
    old, young = (recommend(client)["recommendation_id"] for _ in range(2))
    eventually(lambda: len(records(engine)) == 2)
    with engine.begin() as connection:
        connection.execute(
            text("UPDATE recommendations SET at = :at WHERE recommendation_id = :old"),
            {"at": now() - days * MICROSECONDS_PER_DAY - 1, "old": old},
        )
    context = client.app.state.context
    assert client.portal.call(delete_expired_impressions, context) == 1
    assert [row["recommendation_id"] for row in records(engine)] == [young]
    assert client.portal.call(delete_expired_impressions, context) == 0


def test_expired_impressions_are_deleted_on_start(settings: Settings, database_url: str) -> None:
    settings = settings.model_copy(update={"database_url": database_url})
    with running(settings) as client:
        recommend(client)
    engine = open_engine(database_url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE recommendations SET at = 1"))
    with running(settings):
        eventually(lambda: records(engine) == [])
    engine.dispose()


def test_a_click_counts_for_the_version_of_its_impression(
    client: Client, engine: Engine, bundle_store: Path
) -> None:
    first = recommend(client)
    second_version = tiny_bundle.publish(bundle_store, seed=2)
    eventually(lambda: recommend(client)["model_version"] == second_version)
    second = recommend(client)
    eventually(lambda: is_kept(engine, first) and is_kept(engine, second))
    click(client, first, first["items"][0]["item_id"])
    click(client, second, second["items"][1]["item_id"])
    click(client, second, second["items"][2]["item_id"])
    assert clicks(client, first["model_version"]) == 1
    assert clicks(client, second_version) == 2


def test_an_unattributed_event_is_no_click(client: Client, engine: Engine) -> None:
    answer = recommend(client)
    eventually(lambda: is_kept(engine, answer))
    shown = {item["item_id"] for item in answer["items"]}
    elsewhere = next(item_id for item_id in tiny_bundle.ITEM_IDS if item_id not in shown)
    click(client, answer, elsewhere)
    click(client, answer, next(iter(shown)), recommendation_id=None)
    click(client, answer, next(iter(shown)), recommendation_id="nobody's", user_id="v")
    assert clicks(client, answer["model_version"]) == 0


def test_an_event_sent_again_is_no_second_click(client: Client, engine: Engine) -> None:
    answer = recommend(client)
    eventually(lambda: is_kept(engine, answer))
    event = {
        "event_id": "once",
        "user_id": "u",
        "item_id": answer["items"][0]["item_id"],
        "action": "click",
        "timestamp": now() / 1e6,
        "recommendation_id": answer["recommendation_id"],
    }
    for _ in range(3):
        assert client.post("/v1/events", {"events": [event, event]}).status_code == 200
    assert clicks(client, answer["model_version"]) == 1


def shown_answer(number: int, user_id: str | None = None) -> Impression:
    return Impression(str(number), user_id, "v", number, None, ())


def ids(answers: list[Impression]) -> list[int]:
    return [answer.at for answer in answers]


def test_returned_impressions_come_first_in_order() -> None:
    shown = ImpressionBuffer(Metrics(), longest=10)
    for number in range(5):
        shown.put(shown_answer(number))
    shown.put_back(shown.take(3))
    assert ids(shown.take(10)) == [0, 1, 2, 3, 4]
    assert shown.take(10) == []


def test_a_buffer_never_grows_beyond_its_bound() -> None:
    metrics = Metrics()
    shown = ImpressionBuffer(metrics, longest=4)
    for number in range(10):
        shown.put(shown_answer(number))
    taken = shown.take(3)
    for number in range(10, 13):
        shown.put(shown_answer(number))
    shown.put_back(taken)
    assert len(shown) == 4
    assert ids(shown.take(10)) == [9, 10, 11, 12]
    dropped = metrics.registry.get_sample_value("kairos_recommendation_records_dropped_total")
    assert dropped == 9
