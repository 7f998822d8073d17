"""R12: every operation authorizes every kind of caller as it declares.

The operations and their roles are read from the OpenAPI description, so that new operations are
covered; an operation without a role must be in the list of open ones.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from fastapi import FastAPI
from starlette.routing import BaseRoute

from app.http.routes import AuthorizedRoute
from app.keys.issuing import create_key, revoke_key
from app.main import create_app
from app.settings import Settings
from migrations.run import upgrade
from model.clock import MICROSECONDS_PER_SECOND, now
from tests.app.client import running
from tests.processes import eventually, processes
from tests.promises.figures import Figures
from tests.promises.strength import Strength

OPEN = {"GET /health/live", "GET /health/ready", "GET /metrics"}
"""Operations without a key, for probes and Prometheus."""

LISTS_USERS = {
    "GET /v1/users",
    "GET /v1/items/{item_id}/recipients",
    "GET /v1/overview/changes",
    "GET /v1/overview/examples",
}

UNDESCRIBED = {
    "/openapi.json",
    "/docs",
    "/dashboard",
    "/dashboard/{path:path}",
}
"""Pages without a key; their data comes from operations with roles."""

REACHED_BY = {
    "read": {"read", "admin"},
    "ingest": {"ingest", "admin"},
    "admin": {"admin"},
}
CALLERS = (
    "no key",
    "wrong",
    "expired",
    "revoked",
    "local token",
    "read",
    "read, others' users",
    "read, no list",
    "ingest",
    "ingest, others' users",
    "admin",
)

Send = Callable[..., httpx.Response]


class Running(NamedTuple):
    """A running service: how to send it a request, and its local token."""

    send: Send
    local_token: str


class Operation(NamedTuple):
    """One operation of the OpenAPI description."""

    method: str
    path: str
    role: str | None
    statuses: frozenset[int]
    has_body: bool

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"

    def expected(self, caller: str) -> set[int]:
        """List the statuses a caller may get; an authorized request may fail as declared."""
        if self.role is None:
            return {*self.statuses}
        role, _, limit = caller.partition(", ")
        if role in REACHED_BY[self.role]:
            if limit == "others' users" and "{user_id}" in self.path:
                return {403}
            if limit == "no list" and self.name in LISTS_USERS:
                return {403}
            return {*self.statuses} - {401, 403, 429}
        return {403} if role in REACHED_BY else {401}


def list_operations(app: FastAPI) -> list[Operation]:
    return [
        Operation(
            method=method.upper(),
            path=path,
            role=operation.get("x-role"),
            statuses=frozenset(map(int, operation["responses"])),
            has_body="requestBody" in operation,
        )
        for path, methods in app.openapi()["paths"].items()
        for method, operation in methods.items()
    ]


def list_routes(app: FastAPI) -> Iterator[BaseRoute]:
    """List every route of every included router, described or not."""
    for route in app.routes:
        included = getattr(route, "original_router", None)
        yield from [route] if included is None else included.routes


@pytest.fixture
def app(settings: Settings) -> FastAPI:
    return create_app(settings)


def test_every_operation_has_a_role_or_is_open_on_purpose(app: FastAPI) -> None:
    without = {operation.name for operation in list_operations(app) if operation.role is None}
    assert without == OPEN


def test_every_route_is_authorized_or_open_on_purpose(app: FastAPI) -> None:
    paths = {operation.partition(" ")[2] for operation in OPEN} | UNDESCRIBED
    open_routes = {
        getattr(route, "path", repr(route))
        for route in list_routes(app)
        if not isinstance(route, AuthorizedRoute)
    }
    assert open_routes == paths


def test_operations_with_a_role_document_401_403_and_429(app: FastAPI) -> None:
    for path, methods in app.openapi()["paths"].items():
        for method, operation in methods.items():
            if "x-role" in operation:
                assert {"401", "403", "429"} <= operation["responses"].keys(), (method, path)
                assert operation["security"] == [{"ApiKey": []}], (method, path)
                assert "WWW-Authenticate" in operation["responses"]["401"]["headers"], (
                    method,
                    path,
                )
                assert "Retry-After" in operation["responses"]["429"]["headers"], (method, path)


def create_secrets(database_url: str, local_token: str) -> dict[str, str | None]:
    """Create the secret of each kind of caller; None for no key."""
    soon = now() + MICROSECONDS_PER_SECOND // 2
    expired = create_key(database_url, "expired", "admin", expires_at=soon)
    revoked = create_key(database_url, "revoked", "admin")
    revoke_key(database_url, revoked.key_id)
    admin = create_key(database_url, "admin", "admin").secret
    eventually(lambda: now() > soon)
    return {
        "no key": None,
        "wrong": admin[:-4] + ("AAAA" if admin[-4:] != "AAAA" else "BBBB"),
        "expired": expired.secret,
        "revoked": revoked.secret,
        "local token": local_token,
        "read": create_key(database_url, "read", "read").secret,
        "read, others' users": create_key(database_url, "acme", "read", user_prefix="acme/").secret,
        "read, no list": create_key(database_url, "shop", "read", may_list_users=False).secret,
        "ingest": create_key(database_url, "ingest", "ingest").secret,
        "ingest, others' users": create_key(
            database_url, "feed", "ingest", user_prefix="acme/"
        ).secret,
        "admin": admin,
    }


@contextmanager
def running_service(
    strength: Strength, settings: Settings, bundle_store: Path, directory: Path
) -> Iterator[Running]:
    """Run the service in this process, or at full strength as a process of its own."""
    if not strength.is_full:
        with running(settings.model_copy(update={"requests_per_second": 1e6})) as client:
            yield Running(client.request, client.app.state.context.local_token.secret)
        return
    with processes(directory, bundle_store) as start:
        server = start(
            KAIROS_DATABASE_URL=settings.database_url, KAIROS_REQUESTS_PER_SECOND="1000000"
        )
        yield Running(server.http.request, server.token)


def call(send: Send, operation: Operation, secret: str | None) -> httpx.Response:
    """Send a well-formed request with an unknown id to an operation."""
    content: dict[str, Any] = {"json": {}} if operation.has_body else {}
    if secret is not None:
        content["headers"] = {"Authorization": f"Bearer {secret}"}
    return send(operation.method, re.sub(r"\{\w+\}", "nothing-here", operation.path), **content)


def test_every_caller_gets_the_declared_status(
    settings: Settings,
    database_url: str,
    bundle_store: Path,
    tmp_path: Path,
    strength: Strength,
    figures: Figures,
) -> None:
    upgrade(database_url)
    settings = settings.model_copy(update={"database_url": database_url})
    checked = list_operations(create_app(settings))
    wrong: dict[tuple[str, str], int] = {}
    with running_service(strength, settings, bundle_store, tmp_path) as (send, local_token):
        secrets = create_secrets(database_url, local_token)
        assert tuple(secrets) == CALLERS
        last_created = {"Authorization": "Bearer " + str(secrets["ingest, others' users"])}
        eventually(lambda: send("GET", "/v1/caller", headers=last_created).status_code != 401)
        for operation in checked:
            for caller, secret in secrets.items():
                status = call(send, operation, secret).status_code
                if status not in operation.expected(caller):
                    wrong[operation.name, caller] = status
    figures.record(
        "R12",
        f"endpoint by caller, {database_url.partition(':')[0]}",
        operations=len(checked),
        callers=len(CALLERS),
        cells=len(checked) * len(CALLERS),
        wrong=len(wrong),
    )
    assert wrong == {}
