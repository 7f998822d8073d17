"""DELETE /v1/users/{user_id}, and the refusal of copies afterwards."""

import threading
from pathlib import Path
from typing import Any
from urllib.parse import quote

import polars as pl
import pytest
from sqlalchemy import text

from app.db.engine import open_engine
from app.db.erasures import compute_user_digest
from app.http.types import format_instant, parse_instant
from app.imports import import_events
from app.serving.impressions import Impression
from app.settings import Settings
from model.clock import MICROSECONDS_PER_SECOND, now, to_datetime
from tests.app.client import Client, problem, running
from training.data.columns import EVENT_SCHEMA
from training.data.sources import read_events

LONG_AGO = 1_000_000_000_000_000


def event(user_id: str, item_id: str, at: int = LONG_AGO, **more: Any) -> dict[str, Any]:
    return {
        "user_id": user_id,
        "item_id": item_id,
        "action": "view",
        "timestamp": format_instant(at),
        **more,
    }


def send(client: Client, *events: dict[str, Any]) -> dict[str, Any]:
    response = client.post("/v1/events", {"events": events})
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def erase(client: Client, user_id: str) -> dict[str, Any]:
    response = client.request("DELETE", f"/v1/users/{quote(user_id, safe='')}")
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def stored_items(client: Client, user_id: str) -> list[str]:
    events = client.get(f"/v1/users/{quote(user_id, safe='')}").json()["events"]
    return [one["item_id"] for one in events]


def rows(client: Client, question: str) -> int:
    """Count rows in the database."""
    engine = open_engine(client.app.state.context.settings.database_url)
    with engine.connect() as connection:
        counted = connection.execute(text(question)).scalar_one()
    engine.dispose()
    return int(counted)


def test_a_user_is_erased_and_others_stay(client_on_either: Client) -> None:
    send(client_on_either, event("a/b", "i1"), event("a/b", "i2"), event("a", "i3"))
    for user_id in ("a/b", "a"):
        client_on_either.get(f"/v1/users/{quote(user_id, safe='')}/recommendations")
    wait_until_recorded(client_on_either, 2)
    answer = erase(client_on_either, "a/b")
    assert (answer["deleted_events"], answer["deleted_recommendations"]) == (2, 1)
    assert stored_items(client_on_either, "a/b") == []
    assert stored_items(client_on_either, "a") == ["i3"]
    listed = client_on_either.get("/v1/users").json()["users"]
    assert [user["user_id"] for user in listed] == ["a"]
    assert rows(client_on_either, "SELECT count(*) FROM recommendations") == 1


def wait_until_recorded(client: Client, shown: int) -> None:
    done = threading.Event()
    for _ in range(200):
        if rows(client, "SELECT count(*) FROM recommendations") >= shown:
            return
        done.wait(0.05)
    raise AssertionError("what was shown was not recorded in time")


def test_erasing_again_deletes_nothing_and_succeeds(client_on_either: Client) -> None:
    send(client_on_either, event("u", "i1"))
    first, again = erase(client_on_either, "u"), erase(client_on_either, "u")
    assert first["deleted_events"] == 1
    assert (again["deleted_events"], again["deleted_recommendations"]) == (0, 0)
    assert (first["warnings"], again["warnings"]) == ([], ["nothing_stored"])
    assert again["erased_until"] > first["erased_until"]
    assert erase(client_on_either, "nobody")["deleted_events"] == 0


def test_only_a_digest_of_the_user_is_kept(client_on_either: Client) -> None:
    send(client_on_either, event("u", "i1"))
    erase(client_on_either, "u")
    found = f"SELECT count(*) FROM erased_users WHERE digest = '{compute_user_digest('u')}'"
    assert rows(client_on_either, found) == 1
    assert rows(client_on_either, "SELECT count(*) FROM erased_users") == 1


def test_a_replay_of_erased_events_is_rejected_alone(client_on_either: Client) -> None:
    batch = [event("u", "i1"), event("v", "i2"), event("u", "i3", event_id="mine")]
    assert send(client_on_either, *batch)["accepted"] == 3
    until = erase(client_on_either, "u")["erased_until"]
    answer = send(client_on_either, *batch)
    assert (answer["accepted"], answer["duplicates"]) == (0, 1)
    assert [(one["index"], one["code"]) for one in answer["rejected"]] == [
        (0, "user_erased"),
        (2, "user_erased"),
    ]
    assert until in answer["rejected"][0]["message"]
    assert stored_items(client_on_either, "u") == []
    assert client_on_either.metric("kairos_events_ingested_total", result="rejected") == 2


def test_an_erased_user_who_returns_is_a_new_user(
    client_on_either: Client, migrated_database_url: str
) -> None:
    send(client_on_either, event("u", "i1"))
    until = parse_instant(erase(client_on_either, "u")["erased_until"])
    assert send(client_on_either, event("u", "i2", until))["accepted"] == 0
    assert send(client_on_either, event("u", "i3", until + 1))["accepted"] == 1
    assert stored_items(client_on_either, "u") == ["i3"]
    assert read_events(migrated_database_url)["item_id"].to_list() == ["i3"]


def test_copies_of_events_ahead_of_the_clock_are_refused(client_on_either: Client) -> None:
    """A sender's clock may be ahead; copies of its events are refused, too."""
    ahead = now() + 200 * MICROSECONDS_PER_SECOND
    send(client_on_either, event("u", "i1", ahead))
    assert parse_instant(erase(client_on_either, "u")["erased_until"]) == ahead
    assert parse_instant(erase(client_on_either, "u")["erased_until"]) == ahead
    assert send(client_on_either, event("u", "i1", ahead))["rejected"][0]["code"] == "user_erased"


def test_an_import_of_an_old_file_leaves_erased_users_out(
    client_on_either: Client, migrated_database_url: str
) -> None:
    happened = [
        ("u", "i1", to_datetime(LONG_AGO), "view", None),
        ("v", "i2", to_datetime(LONG_AGO), "view", None),
        ("u", "i3", to_datetime(now() + 10**8), "view", None),
    ]
    file = pl.DataFrame(happened, EVENT_SCHEMA, orient="row")
    erase(client_on_either, "u")
    assert import_events(migrated_database_url, file)[:3] == (2, 0, 1)
    assert import_events(migrated_database_url, file)[:3] == (0, 2, 1)
    assert read_events(migrated_database_url)["item_id"].to_list() == ["i2", "i3"]


def test_restored_rows_of_an_erased_user_are_not_trained_on(
    client_on_either: Client, migrated_database_url: str
) -> None:
    """A backup is restored over a database with erasures."""
    send(client_on_either, event("u", "i1"), event("v", "i2"))
    erase(client_on_either, "u")
    engine = open_engine(migrated_database_url)
    with engine.begin() as connection:
        connection.execute(
            text(
                "INSERT INTO events (event_id, user_id, item_id, action, at, received_at) "
                "VALUES ('old', 'u', 'i1', 'view', 5, 5)"
            )
        )
    engine.dispose()
    assert read_events(migrated_database_url)["user_id"].to_list() == ["v"]


def test_buffered_impressions_of_an_erased_user_are_dropped(settings: Settings) -> None:
    with running(settings) as client:
        context = client.app.state.context
        for user_id in ("u", "v"):
            client.get(f"/v1/users/{quote(user_id, safe='')}/recommendations")
        erase(client, "u")
        waiting = context.impressions.take(10)
        context.impressions.put_back(waiting)
        assert "u" not in {answer.user_id for answer in waiting}
        wait_until_recorded(client, 1)
        assert rows(client, "SELECT count(*) FROM recommendations WHERE user_id = 'u'") == 0


@pytest.mark.slow
def test_impressions_buffered_in_another_process_are_dropped(
    settings: Settings, database_url: str
) -> None:
    """Of two processes on one database, one writes an impression after the erasure."""
    both = settings.model_copy(update={"database_url": database_url})
    with running(both) as one, running(both) as other:
        before = now()
        erase(one, "u")
        for user_id, at in [("u", before), ("v", before), ("u", now() + 1)]:
            other.app.state.context.impressions.put(
                Impression(
                    recommendation_id=f"{user_id} at {at}",
                    user_id=user_id,
                    model_version="v",
                    at=at,
                    fallback=None,
                    item_ids=("i1",),
                )
            )
        wait_until_recorded(other, 2)
        assert rows(one, "SELECT count(*) FROM recommendations WHERE user_id = 'v'") == 1
        assert rows(one, "SELECT count(*) FROM recommendations WHERE user_id = 'u'") == 1


def test_an_erasure_waits_for_concurrent_ingestion(postgresql_url: str, settings: Settings) -> None:
    """A batch that is written during the erasure leaves no rows."""
    with running(settings.model_copy(update={"database_url": postgresql_url})) as client:
        send(client, event("u", "i0"))
        erased: list[dict[str, Any]] = []
        engine = open_engine(postgresql_url)
        with engine.begin() as connection:
            connection.execute(text("LOCK TABLE events IN ROW EXCLUSIVE MODE"))
            connection.execute(
                text(
                    "INSERT INTO events (event_id, user_id, item_id, action, at, received_at) "
                    "VALUES ('on its way', 'u', 'i1', 'view', 5, 5)"
                )
            )
            erasing = threading.Thread(target=lambda: erased.append(erase(client, "u")))
            erasing.start()
            erasing.join(0.5)
            assert erasing.is_alive()
        erasing.join(20)
        engine.dispose()
        assert erased[0]["deleted_events"] == 2
        assert stored_items(client, "u") == []


def test_the_log_records_an_erasure_without_the_user_id(
    client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    send(client, event("secret-user", "i1"))
    erase(client, "secret-user")
    printed = capsys.readouterr()
    assert "user_erased" in printed.out
    assert "secret-user" not in printed.out + printed.err


def test_the_id_is_not_legible_in_the_file(tmp_path: Path, settings: Settings) -> None:
    with running(settings) as client:
        for number in range(20):
            send(
                client, *(event(f"user-{number}-legible", f"i{n}", LONG_AGO + n) for n in range(50))
            )
        for number in range(0, 20, 2):
            erase(client, f"user-{number}-legible")
        files = [*tmp_path.glob("kairos.db*")]
        found = b"".join(file.read_bytes() for file in files)
    legible = [number for number in range(20) if f"user-{number}-legible".encode() in found]
    assert legible == list(range(1, 20, 2))


@pytest.mark.slow
def test_a_long_read_does_not_block_an_erasure(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("app.db.engine._BUSY_SECONDS", 0.1)
    with running(settings) as client:
        send(client, event("u", "i1"))
        engine = open_engine(settings.database_url)
        with engine.connect() as reader:
            reader.execute(text("SELECT * FROM events")).all()
            assert erase(client, "u")["deleted_events"] == 1
            assert "write_ahead_log_not_emptied" in capsys.readouterr().out
        erase(client, "u")
        assert "write_ahead_log_not_emptied" not in capsys.readouterr().out
        engine.dispose()


@pytest.mark.parametrize("user_id", ["%00", "x" * 257])
def test_an_invalid_id_is_refused(client: Client, user_id: str) -> None:
    problem(client.request("DELETE", f"/v1/users/{user_id}"), 422, "validation_failed")
