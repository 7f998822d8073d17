"""GET /v1/audit and `kairos audit`: acts that stay known."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.orm import Session
from typer.testing import CliRunner

from app.audit.recording import record_act
from app.db.audit import AuditRepository
from app.db.database import Database
from app.db.engine import WRITES, open_engine
from app.db.erasures import ErasureRepository, compute_user_digest
from app.db.events import EventRepository, UserActivity
from app.errors import DatabaseUnavailableError
from app.keys.issuing import create_key, revoke_key
from app.recommendations.impression_writer import delete_expired_audit_records
from app.settings import Settings
from cli.main import app as command_line
from model.clock import MICROSECONDS_PER_DAY, now
from tests.app.client import Client, problem, running

DAY, SECOND = MICROSECONDS_PER_DAY, 1_000_000


def read_page(client: Client, **query: Any) -> dict[str, Any]:
    response = client.get("/v1/audit", params=query)
    assert response.status_code == 200, response.text
    page: dict[str, Any] = response.json()
    return page


def list_acts(client: Client) -> list[str]:
    return [entry["act"] for entry in read_page(client)["entries"]]


def send(client: Client, *user_ids: str) -> None:
    events = [
        {"user_id": user_id, "item_id": "i1", "action": "view", "timestamp": 1_767_225_600}
        for user_id in user_ids
    ]
    assert client.post("/v1/events", {"events": events}).status_code == 200


def test_an_erasure_is_recorded_without_the_id(client_on_either: Client) -> None:
    send(client_on_either, "somebody", "other")
    assert client_on_either.request("DELETE", "/v1/users/somebody").status_code == 200
    response = client_on_either.get("/v1/audit")
    assert "somebody" not in response.text
    (entry,) = response.json()["entries"]
    assert entry["act"] == "erase_user"
    assert entry["detail"] == {
        "sha256": compute_user_digest("somebody"),
        "events": 1,
        "recommendations": 0,
    }


def test_an_erasure_that_fails_is_not_recorded(client_on_either: Client) -> None:
    database: Database = client_on_either.app.state.context.database

    def erase_and_fail(session: Session) -> None:
        ErasureRepository(session).erase("u", 1, actor="nobody")
        raise LookupError("fails before the commit")

    with pytest.raises(LookupError):
        database.write_blocking(erase_and_fail)
    assert list_acts(client_on_either) == []


def test_long_lists_of_users_are_recorded_and_short_ones_not(client_on_either: Client) -> None:
    send(client_on_either, "a", "b")
    assert client_on_either.get("/v1/users").status_code == 200
    assert client_on_either.get("/v1/users?limit=100").status_code == 200
    assert list_acts(client_on_either) == []
    assert len(client_on_either.get("/v1/users?limit=101").json()["users"]) == 2
    (entry,) = read_page(client_on_either)["entries"]
    assert (entry["act"], entry["detail"]) == ("list_users", {"users": 2})
    assert entry["actor"]


def test_a_long_list_of_users_delays_no_event(
    settings: Settings, migrated_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_listing, may_end = threading.Event(), threading.Event()
    list_users = EventRepository.list_users

    def list_slowly(self: EventRepository, prefix: str, limit: int) -> list[UserActivity]:
        listed = list_users(self, prefix, limit)
        is_listing.set()
        may_end.wait(30)
        return listed

    monkeypatch.setattr(EventRepository, "list_users", list_slowly)
    update = {"database_url": migrated_database_url, "database_write_threads": 1}
    with running(settings.model_copy(update=update)) as client, ThreadPoolExecutor(1) as threads:
        listing = threads.submit(client.get, "/v1/users?limit=101")
        try:
            assert is_listing.wait(30)
            send(client, "a")
        finally:
            may_end.set()
        assert listing.result().status_code == 200
        assert list_acts(client) == ["list_users"]


def test_a_list_of_users_that_cannot_be_recorded_is_not_sent(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise DatabaseUnavailableError("down")

    send(client, "a")
    monkeypatch.setattr(AuditRepository, "add", fail)
    problem(client.get("/v1/users?limit=101"), 503, "database_unavailable")
    assert client.get("/v1/users?limit=100").status_code == 200


def test_changes_of_the_served_models_are_part_of_the_audit(client: Client) -> None:
    version = client.get("/v1/models").json()["models"][0]["version"]
    path = f"/v1/models/{version}/activate"
    assert client.post(path, {"reason": "it is better"}).status_code == 200
    (entry,) = read_page(client)["entries"]
    assert (entry["act"], entry["detail"]["version"]) == ("activate", version)
    assert entry["detail"]["reason"] == "it is better"


def test_pages_hold_every_entry_once_newest_first(client_on_either: Client) -> None:
    """Both sources have entries at the same instants."""
    url = client_on_either.app.state.context.settings.database_url
    first = now() // SECOND * SECOND - DAY
    engine = open_engine(url)
    with Session(engine.execution_options(**WRITES)) as session, session.begin():
        for number in range(7):
            AuditRepository(session).add(
                "backup", actor="cli:a", at=first + number // 2 * SECOND, number=number
            )
            change = "INSERT INTO model_changes (at, actor, change) VALUES (:at, 'b', 'activate')"
            session.execute(text(change), {"at": first + number // 3 * SECOND})
    engine.dispose()
    whole = read_page(client_on_either, limit=500)
    assert whole["next_cursor"] is None
    assert len(whole["entries"]) == 14
    instants = [entry["at"] for entry in whole["entries"]]
    assert instants == sorted(instants, reverse=True)
    for limit in (1, 3):
        paged: list[Any] = []
        cursor: str | None = None
        while True:
            query = {"limit": limit} | ({} if cursor is None else {"cursor": cursor})
            page = read_page(client_on_either, **query)
            paged += page["entries"]
            cursor = page["next_cursor"]
            if cursor is None:
                break
        assert paged == whole["entries"]


@pytest.mark.parametrize("cursor", ["x", "1.2.3", "1.1", "9" * 40 + ".0.1", ""])
def test_a_cursor_of_another_kind_is_refused(client: Client, cursor: str) -> None:
    problem(client.get("/v1/audit", params={"cursor": cursor}), 422, "validation_failed")


def test_old_records_are_deleted_and_changes_of_models_stay(client_on_either: Client) -> None:
    context = client_on_either.app.state.context
    old = now() - context.settings.audit_days * DAY - 1

    def write(session: Session) -> None:
        AuditRepository(session).add("backup", actor="cli:a", at=old)
        AuditRepository(session).add("restore", actor="cli:a", at=old + DAY)
        change = "INSERT INTO model_changes (at, actor, change) VALUES (1, 'b', 'activate')"
        session.execute(text(change))

    context.database.write_blocking(write)
    # The service does so, too, when it starts.
    client_on_either.portal.call(delete_expired_audit_records, context)
    assert list_acts(client_on_either) == ["restore", "activate"]


def test_the_command_line_shows_the_audit(client: Client, settings: Settings) -> None:
    record_act(settings.database_url, "export_events", actor="cli:somebody", until=None)
    shown = CliRunner().invoke(
        command_line, ["audit", "--json", "--database", settings.database_url]
    )
    assert shown.exit_code == 0, shown.output
    (entry,) = json.loads(shown.stdout)
    assert (entry["actor"], entry["act"]) == ("cli:somebody", "export_events")
    assert (
        CliRunner()
        .invoke(command_line, ["audit", "--database", settings.database_url])
        .stdout.count("export_events")
    )


def test_created_and_revoked_keys_are_recorded(client: Client, settings: Settings) -> None:
    issued = create_key(settings.database_url, "nightly", "ingest", actor="cli:somebody")
    assert revoke_key(settings.database_url, issued.key_id, actor="cli:other")
    assert not revoke_key(settings.database_url, issued.key_id, actor="cli:third")
    url = settings.database_url
    shown = json.loads(
        CliRunner().invoke(command_line, ["audit", "--json", "--database", url]).stdout
    )
    assert [(entry["act"], entry["actor"]) for entry in shown] == [
        ("revoke_key", "cli:other"),
        ("create_key", "cli:somebody"),
    ]
    assert shown[1]["detail"] == {"key_id": issued.key_id, "name": "nightly", "role": "ingest"}
    assert issued.secret not in json.dumps(shown)
