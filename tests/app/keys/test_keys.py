"""Keys over HTTP, on a running service."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from sqlalchemy import text

from app.db.engine import open_engine
from app.keys.issuing import create_key, revoke_key
from app.settings import Settings
from model.clock import now
from tests.app.client import Client, running
from tests.processes import eventually

EVENT = {"user_id": "u", "item_id": "i1", "action": "view", "timestamp": 1_767_225_600}


@pytest.fixture
def service(settings: Settings, database_url: str) -> Iterator[tuple[Client, str]]:
    """A running service on either database in turn, and the database's URL."""
    settings = settings.model_copy(update={"database_url": database_url})
    with running(settings) as client:
        yield client, database_url


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


def status(client: Client, secret: str | None = None, path: str = "/v1/items") -> int:
    return client.get(path, headers={} if secret is None else bearer(secret)).status_code


def get_from_elsewhere(client: Client, path: str, **content: Any) -> httpx.Response:
    """Sends a request from another address."""

    async def send() -> httpx.Response:
        transport = httpx.ASGITransport(client.app, client=("192.0.2.1", 50_000))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as sender:
            return await sender.get(path, **content)

    return client.portal.call(send)


def test_before_the_first_key_only_loopback_is_authorized(client_on_either: Client) -> None:
    assert status(client_on_either) == 200
    refused = get_from_elsewhere(client_on_either, "/v1/items")
    assert (refused.status_code, refused.json()["code"]) == (401, "unauthenticated")


def test_a_first_key_closes_the_service_within_a_poll(service: tuple[Client, str]) -> None:
    client, database_url = service
    key = create_key(database_url, "shop", "read")
    eventually(lambda: status(client) == 401)
    assert status(client, key.secret) == 200
    assert get_from_elsewhere(client, "/v1/items", headers=bearer(key.secret)).status_code == 200


@pytest.mark.slow
def test_a_revoked_key_is_refused_within_a_poll(service: tuple[Client, str]) -> None:
    client, database_url = service
    key = create_key(database_url, "shop", "read")
    eventually(lambda: status(client, key.secret) == 200)
    assert revoke_key(database_url, key.key_id)
    eventually(lambda: status(client, key.secret) == 401)
    assert status(client) == 401  # a revoked key leaves the service closed


def test_a_key_expires_by_itself_without_a_poll(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    expires_at = now() + 3_600_000_000
    key = create_key(settings.database_url, "shop", "read", expires_at=expires_at)
    with running(settings.model_copy(update={"poll_interval_seconds": 3600.0})) as client:
        keys = client.app.state.context.keys
        monkeypatch.setattr(keys, "_clock", lambda: expires_at - 1)
        assert status(client, key.secret) == 200
        monkeypatch.setattr(keys, "_clock", lambda: expires_at)
        assert status(client, key.secret) == 401


def test_keys_stay_valid_while_the_database_is_down(service: tuple[Client, str]) -> None:
    client, database_url = service
    key = create_key(database_url, "shop", "admin")
    eventually(lambda: status(client, key.secret) == 200)
    engine = open_engine(database_url)
    with engine.begin() as connection:
        connection.execute(text("ALTER TABLE api_keys RENAME TO away"))
    eventually(lambda: client.app.state.context.keys.is_loaded)
    assert status(client, key.secret) == 200
    assert status(client) == 401
    with engine.begin() as connection:
        connection.execute(text("ALTER TABLE away RENAME TO api_keys"))
    engine.dispose()
    revoke_key(database_url, key.key_id)
    eventually(lambda: status(client, key.secret) == 401)


def test_an_unreadable_row_does_not_end_the_refresh_loop(
    client: Client, settings: Settings
) -> None:
    key = create_key(settings.database_url, "shop", "read")
    eventually(lambda: status(client, key.secret) == 200)
    engine = open_engine(settings.database_url)
    unreadable = "INSERT INTO items (item_id, categories, updated_at) VALUES ('x', '{', :at)"
    with engine.begin() as connection:
        connection.execute(text(unreadable), {"at": now()})
    revoke_key(settings.database_url, key.key_id)
    eventually(lambda: status(client, key.secret) == 401)
    engine.dispose()


def test_a_refusal_names_the_remedy(client: Client, settings: Settings) -> None:
    create_key(settings.database_url, "shop", "read")
    eventually(lambda: status(client) == 401)
    refused = client.get("/v1/items")
    assert refused.headers["WWW-Authenticate"] == 'Bearer realm="kairos"'
    assert refused.headers["Content-Type"] == "application/problem+json"
    assert "created with kairos keys create" in refused.json()["detail"]


def test_a_rate_limited_response_has_retry_after(client: Client, settings: Settings) -> None:
    key = create_key(settings.database_url, "shop", "read", requests_per_second=0.1)
    eventually(lambda: status(client) == 401)
    assert status(client, key.secret) == 200
    limited = client.get("/v1/items", headers=bearer(key.secret))
    assert (limited.status_code, limited.json()["code"]) == (429, "rate_limited")
    assert 1 <= int(limited.headers["Retry-After"]) <= 10


def test_a_key_in_the_url_is_neither_accepted_nor_repeated(
    client: Client, settings: Settings
) -> None:
    key = create_key(settings.database_url, "shop", "read")
    eventually(lambda: status(client, key.secret) == 200)
    refused = client.get(f"/v1/items?api_key={key.secret}")
    assert refused.status_code == 401
    assert "revoke it" in refused.json()["detail"]
    assert key.secret not in refused.text


def test_a_head_request_needs_a_key(client: Client, settings: Settings) -> None:
    key = create_key(settings.database_url, "shop", "read")
    eventually(lambda: status(client) == 401)
    responses = [
        client.request("HEAD", "/v1/items", headers=each) for each in ({}, bearer(key.secret))
    ]
    assert [answer.status_code for answer in responses] == [401, 200]


def test_a_request_is_authorized_before_its_body_is_read(
    client: Client, settings: Settings
) -> None:
    create_key(settings.database_url, "feed", "ingest")
    eventually(lambda: status(client) == 401)
    for body in (b"{", b"x" * (settings.max_body_bytes + 1)):
        assert client.request("POST", "/v1/events", content=body).status_code == 401


def test_neither_keys_nor_their_ids_are_logged(
    client: Client, settings: Settings, capfd: pytest.CaptureFixture[str]
) -> None:
    key = create_key(settings.database_url, "feed", "ingest")
    eventually(lambda: status(client, key.secret) == 403)
    assert client.post("/v1/events", {"events": [EVENT]}, headers=bearer(key.secret)).is_success
    client.get("/v1/items", headers={"X-API-Key": key.secret + "x"})
    logged = "".join(capfd.readouterr())
    assert "route=/v1/items" in logged
    assert key.secret not in logged
    assert key.key_id not in logged


def test_a_service_without_keys_logs_one_warning(
    settings: Settings, capfd: pytest.CaptureFixture[str]
) -> None:
    with running(settings) as client:
        eventually(lambda: status(client) == 200)
    (line,) = (line for line in capfd.readouterr().out.splitlines() if "no_api_keys" in line)
    assert "warning" in line
    assert "kairos keys create NAME --role admin" in line
    create_key(settings.database_url, "shop", "read")
    with running(settings):
        pass
    assert "no_api_keys" not in capfd.readouterr().out
