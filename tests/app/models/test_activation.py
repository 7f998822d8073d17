"""Activation, rollback and traffic over HTTP, and the recorded changes."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from app.db.database import Database
from app.db.tables import ModelChange
from app.settings import Settings
from model.store.store import CURRENT, TRAFFIC, BundleStore
from model.store.traffic import Traffic
from tests.app import tiny_bundle
from tests.app.client import REQUEST, Client, recommend, running
from tests.app.models.model_requests import remove_database
from tests.processes import eventually

FULL_AT_COMMIT = """
CREATE FUNCTION full_disk() RETURNS trigger AS
$$ BEGIN RAISE EXCEPTION 'no space left' USING ERRCODE = 'disk_full'; END $$ LANGUAGE plpgsql;
CREATE CONSTRAINT TRIGGER full_disk AFTER INSERT ON model_changes
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION full_disk()
"""
"""A trigger that accepts the insertion of a change and fails at its commit."""
UNKNOWN = "20200101T000000Z-000000000000"


@pytest.fixture
def versions(bundle_store: Path) -> list[str]:
    """Three published versions; the first is current."""
    current = BundleStore(bundle_store).read_current()
    assert current is not None
    others = [tiny_bundle.publish(bundle_store, seed=seed, activate=False) for seed in (2, 3)]
    return [current, *others]


@pytest.fixture
def other_process(settings: Settings, migrated_database_url: str) -> Iterator[Client]:
    """Another application on the same store and database."""
    with running(settings.model_copy(update={"database_url": migrated_database_url})) as client:
        yield client


def activate(client: Client, version: str, reason: str | None = None) -> httpx.Response:
    return client.post(f"/v1/models/{version}/activate", {"reason": reason})


def roll_back(client: Client) -> httpx.Response:
    return client.post("/v1/models/rollback", {})


def read_changes(client: Client) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get("/v1/models/changes").json()["changes"]
    return found


def read_rollback_version(client: Client, limit: int = 100) -> str | None:
    answer = client.get(f"/v1/models/changes?limit={limit}").json()
    assert len(answer["changes"]) <= limit
    version: str | None = answer["rollback_version"]
    return version


def refusal_detail(response: httpx.Response, status: int, code: str) -> str:
    assert (response.status_code, response.json()["code"]) == (status, code), response.text
    return str(response.json()["detail"])


def test_an_activated_version_serves_at_once(
    client_on_either: Client, versions: list[str], bundle_store: Path
) -> None:
    old, new, _ = versions
    assert activate(client_on_either, new).json() == {"version": new, "previous_version": old}
    assert recommend(client_on_either)["model_version"] == new
    assert BundleStore(bundle_store).read_current() == new


@pytest.mark.slow
def test_another_process_follows_within_two_seconds(
    client_on_either: Client, other_process: Client, versions: list[str]
) -> None:
    activate(client_on_either, versions[1])
    eventually(lambda: recommend(other_process)["model_version"] == versions[1])
    roll_back(other_process)
    eventually(lambda: recommend(client_on_either)["model_version"] == versions[0])


def test_every_change_is_recorded_newest_first(
    client_on_either: Client, versions: list[str]
) -> None:
    first, second, third = versions
    activate(client_on_either, second, "the new one")
    roll_back(client_on_either)
    traffic = {"challenger": third, "share": 0.5, "shadow": second, "reason": "comparing"}
    client_on_either.put("/v1/models/traffic", traffic)
    recorded = read_changes(client_on_either)
    assert [(c["change"], c["version"], c["previous_version"], c["reason"]) for c in recorded] == [
        ("traffic", first, first, "comparing"),
        ("rollback", first, second, None),
        ("activate", second, first, "the new one"),
    ]
    assert recorded[0]["traffic"] == {"challenger": third, "share": 0.5, "shadow": second}
    assert {c["actor"] for c in recorded} == {"loopback"}
    assert [c["at"] for c in recorded] == sorted((c["at"] for c in recorded), reverse=True)
    limited = client_on_either.get("/v1/models/changes?limit=1").json()["changes"]
    assert limited == recorded[:1]


def test_changes_name_the_version_that_a_rollback_activates(
    client_on_either: Client, versions: list[str]
) -> None:
    assert read_rollback_version(client_on_either) is None
    for version in (versions[1], versions[2], versions[1]):
        activate(client_on_either, version)
    while (expected := read_rollback_version(client_on_either, limit=1)) is not None:
        assert roll_back(client_on_either).json()["version"] == expected
    refusal_detail(roll_back(client_on_either), 409, "nothing_to_roll_back")


def test_a_change_of_the_traffic_is_no_step_of_a_rollback(
    client_on_either: Client, versions: list[str]
) -> None:
    activate(client_on_either, versions[1])
    client_on_either.put("/v1/models/traffic", {"shadow": versions[2]})
    assert read_rollback_version(client_on_either) == versions[0]
    assert roll_back(client_on_either).json()["version"] == versions[0]


def test_only_the_listed_changes_are_read_whole(
    client_on_either: Client, versions: list[str], migrated_database_url: str
) -> None:
    malformed = ModelChange(at=0, actor="old", change="traffic", detail={"share": "unreadable"})
    database = Database(migrated_database_url, threads=1, queue=0)
    database.write_blocking(lambda session: session.add(malformed))
    database.close()
    activate(client_on_either, versions[1])
    assert read_rollback_version(client_on_either, limit=1) == versions[0]
    assert roll_back(client_on_either).json()["version"] == versions[0]


def test_changes_are_listed_while_the_store_is_unreadable(
    client: Client, versions: list[str], bundle_store: Path
) -> None:
    activate(client, versions[1])
    assert read_rollback_version(client) == versions[0]
    (bundle_store / CURRENT).unlink()
    (bundle_store / CURRENT).mkdir()
    assert len(read_changes(client)) == 1
    assert read_rollback_version(client) is None


def test_rollbacks_go_further_back_each_time(client_on_either: Client, versions: list[str]) -> None:
    first, second, third = versions
    for version in (second, third, second):
        activate(client_on_either, version)
    rolled_back_to = [roll_back(client_on_either).json()["version"] for _ in range(3)]
    assert rolled_back_to == [third, second, first]
    refusal_detail(roll_back(client_on_either), 409, "nothing_to_roll_back")
    assert recommend(client_on_either)["model_version"] == first


def test_activating_the_current_version_adds_no_rollback_step(
    client: Client, versions: list[str]
) -> None:
    first, second, _ = versions
    for _ in range(3):
        answer = activate(client, second)
        assert answer.status_code == 200
    assert answer.json() == {"version": second, "previous_version": second}
    assert roll_back(client).json()["version"] == first


def test_an_activation_after_a_rollback_drops_the_later_version(
    client: Client, versions: list[str]
) -> None:
    first, second, third = versions
    activate(client, second)
    roll_back(client)
    activate(client, third)
    assert roll_back(client).json()["version"] == first


def test_a_pointer_moved_without_a_record_can_be_rolled_back_to(
    client: Client, versions: list[str], bundle_store: Path
) -> None:
    first, second, third = versions
    activate(client, second)
    (bundle_store / CURRENT).write_text(third)
    eventually(lambda: recommend(client)["model_version"] == third)
    assert roll_back(client).json() == {"version": second, "previous_version": third}
    assert roll_back(client).json() == {"version": first, "previous_version": second}
    refusal_detail(roll_back(client), 409, "nothing_to_roll_back")


def test_a_missing_pointer_is_rolled_back_to_its_last_version(
    client: Client, versions: list[str], bundle_store: Path
) -> None:
    activate(client, versions[1])
    (bundle_store / CURRENT).unlink()
    assert roll_back(client).json() == {"version": versions[1], "previous_version": None}


def test_without_a_record_there_is_nothing_to_roll_back(client_on_either: Client) -> None:
    detail = refusal_detail(roll_back(client_on_either), 409, "nothing_to_roll_back")
    assert "by its name" in detail
    assert read_changes(client_on_either) == []


def test_a_rollback_does_not_skip_an_unusable_version(
    client: Client, versions: list[str], bundle_store: Path
) -> None:
    first, second, third = versions
    activate(client, second)
    activate(client, third)
    tiny_bundle.damage(bundle_store, second)
    assert second in refusal_detail(roll_back(client), 409, "model_refused")
    (bundle_store / second).rename(bundle_store.parent / "moved")
    assert second in refusal_detail(roll_back(client), 409, "model_refused")
    assert recommend(client)["model_version"] == third
    assert BundleStore(bundle_store).read_current() == third
    assert len(read_changes(client)) == 2
    assert activate(client, first).status_code == 200


def test_an_unpublished_version_is_not_found(client: Client, versions: list[str]) -> None:
    for unknown in (UNKNOWN, "..", "%00", "x" * 3000, CURRENT):
        response = activate(client, unknown)
        assert response.status_code == 404, unknown
    for role in ("challenger", "shadow"):
        traffic = {role: UNKNOWN, "share": 0.0}
        refusal_detail(client.put("/v1/models/traffic", traffic), 404, "model_not_found")
    assert read_changes(client) == []
    assert recommend(client)["model_version"] == versions[0]


def test_an_open_version_damaged_on_disk_is_not_activated(
    client: Client, versions: list[str], bundle_store: Path
) -> None:
    pinned = {**REQUEST, "model_version": versions[1]}
    assert client.post("/v1/recommendations", pinned).json()["model_version"] == versions[1]
    tiny_bundle.damage(bundle_store, versions[1])
    assert "altered" in refusal_detail(activate(client, versions[1]), 409, "model_refused")
    assert BundleStore(bundle_store).read_current() == versions[0]


def test_a_reason_is_one_line(client: Client, versions: list[str]) -> None:
    for reason in ("", "x" * 501, "two\nlines", "nul\0", 5):
        response = client.post(f"/v1/models/{versions[1]}/activate", {"reason": reason})
        refusal_detail(response, 422, "validation_failed")
    assert recommend(client)["model_version"] == versions[0]


def test_traffic_can_be_set_and_cleared(client_on_either: Client, versions: list[str]) -> None:
    first, second, third = versions
    traffic = {"challenger": second, "share": 1.0, "shadow": third}
    assert client_on_either.put("/v1/models/traffic", traffic).json() == traffic
    assert client_on_either.get("/v1/models/traffic").json() == traffic
    known = {**REQUEST, "user_id": "u1"}
    answer = client_on_either.post("/v1/recommendations", known).json()
    assert answer["model_version"] == second
    no_traffic = {"challenger": None, "share": 0.0, "shadow": None}
    assert client_on_either.put("/v1/models/traffic", {}).json() == no_traffic
    answer = client_on_either.post("/v1/recommendations", known).json()
    assert answer["model_version"] == first


@pytest.mark.slow
def test_traffic_reaches_the_other_process(
    client_on_either: Client, other_process: Client, versions: list[str]
) -> None:
    client_on_either.put("/v1/models/traffic", {"challenger": versions[1], "share": 1.0})
    known = {**REQUEST, "user_id": "u1"}
    eventually(
        lambda: (
            other_process.post("/v1/recommendations", known).json()["model_version"] == versions[1]
        )
    )


def test_a_damaged_version_gets_no_traffic(
    client: Client, versions: list[str], bundle_store: Path
) -> None:
    tiny_bundle.damage(bundle_store, versions[2])
    before = {"challenger": versions[1], "share": 0.5, "shadow": None}
    client.put("/v1/models/traffic", before)
    traffic = {"challenger": versions[1], "share": 0.5, "shadow": versions[2]}
    refusal_detail(client.put("/v1/models/traffic", traffic), 409, "model_refused")
    assert client.get("/v1/models/traffic").json() == before
    assert len(read_changes(client)) == 1


def test_a_share_needs_a_challenger(client: Client, versions: list[str]) -> None:
    for traffic in ({"share": 0.5}, {"challenger": versions[1], "share": 1.5}, {"share": -0.1}):
        refusal_detail(client.put("/v1/models/traffic", traffic), 422, "validation_failed")


def test_an_unreadable_traffic_file_can_be_replaced(client: Client, bundle_store: Path) -> None:
    (bundle_store / TRAFFIC).write_text("{")
    refusal_detail(client.get("/v1/models/traffic"), 503, "store_unavailable")
    assert client.put("/v1/models/traffic", {}).status_code == 200
    assert client.get("/v1/models/traffic").status_code == 200


@pytest.mark.slow
@pytest.mark.usefixtures("brief_shutdown")
def test_without_a_database_nothing_changes(
    client: Client, versions: list[str], bundle_store: Path, tmp_path: Path
) -> None:
    activate(client, versions[1])
    remove_database(client, tmp_path)
    for response in (
        activate(client, versions[2]),
        roll_back(client),
        client.put("/v1/models/traffic", {"shadow": versions[2]}),
        client.get("/v1/models/changes"),
    ):
        refusal_detail(response, 503, "database_unavailable")
        assert "Retry-After" in response.headers
    assert BundleStore(bundle_store).read_current() == versions[1]
    assert BundleStore(bundle_store).read_traffic() == Traffic()
    assert recommend(client)["model_version"] == versions[1]


def test_a_commit_that_fails_puts_the_pointer_back(
    settings: Settings, postgresql_url: str, versions: list[str], bundle_store: Path
) -> None:
    with (
        running(settings.model_copy(update={"database_url": postgresql_url})) as client,
        psycopg.connect(postgresql_url, autocommit=True) as connection,
    ):
        connection.execute(FULL_AT_COMMIT)
        for response in (
            activate(client, versions[1]),
            client.put("/v1/models/traffic", {"shadow": versions[1]}),
        ):
            refusal_detail(response, 503, "database_unavailable")
        assert BundleStore(bundle_store).read_current() == versions[0]
        assert BundleStore(bundle_store).read_traffic() == Traffic()
        assert recommend(client)["model_version"] == versions[0]
        connection.execute("DROP TRIGGER full_disk ON model_changes")
        assert activate(client, versions[1]).status_code == 200
        assert len(read_changes(client)) == 1


def test_a_store_that_cannot_be_written_to_changes_nothing(
    client: Client, versions: list[str], bundle_store: Path
) -> None:
    (bundle_store / ".lock").mkdir()
    refusal_detail(activate(client, versions[1]), 503, "store_unavailable")
    assert recommend(client)["model_version"] == versions[0]
    assert read_changes(client) == []


@pytest.mark.slow
def test_changes_in_two_processes_at_once_follow_one_another(
    client_on_either: Client, other_process: Client, versions: list[str], bundle_store: Path
) -> None:
    for client in (client_on_either, other_process):  # the first request builds the routes
        assert activate(client, versions[0]).status_code == 200
        roll_back(client)
    started = threading.Barrier(2)

    def change(client: Client, version: str) -> int:
        started.wait(10)
        made = 0
        for _ in range(10):
            assert activate(client, version).status_code == 200
            back = roll_back(client)
            if back.status_code != 200:  # the other process may have rolled this activation back
                refusal_detail(back, 409, "nothing_to_roll_back")
            made += 1 + (back.status_code == 200)
        return made

    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(change, client_on_either, versions[1])
        second = threads.submit(change, other_process, versions[2])
        made = first.result(60) + second.result(60)
    recorded = read_changes(client_on_either)[::-1]
    assert len(recorded) == 2 + made >= 22
    assert recorded[0]["previous_version"] == versions[0]
    assert all(one["version"] == after["previous_version"] for one, after in pairwise(recorded))
    assert BundleStore(bundle_store).read_current() == recorded[-1]["version"]
    for client in (client_on_either, other_process):
        eventually(
            lambda client=client: recommend(client)["model_version"] == recorded[-1]["version"]
        )
