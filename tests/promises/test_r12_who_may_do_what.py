"""R12: every operation answers every kind of caller as it is declared to.

The operations, and the role each one needs, are read from the description of the API: one that is
added tomorrow is tried, too, and one that forgets its role must be on the list of the open ones.
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
"""What anybody may ask, as probes and Prometheus carry no key."""

UNDESCRIBED = {
    "/openapi.json",
    "/docs",
    "/docs/oauth2-redirect",
    "/redoc",
    "/dashboard",
    "/dashboard/{path:path}",
}
"""Pages anybody may read; what they show, they ask of guarded operations."""

REACHED_BY = {
    "read": {"read", "admin"},
    "ingest": {"ingest", "admin"},
    "admin": {"admin"},
}
CALLERS = ("no key", "wrong", "expired", "revoked", "read", "ingest", "admin")

Ask = Callable[..., httpx.Response]


class Operation(NamedTuple):
    """One operation, as the description tells it."""

    method: str
    path: str
    role: str | None
    statuses: frozenset[int]
    has_body: bool

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"

    def expected(self, caller: str) -> set[int]:
        """The statuses a caller may meet: let in, a made-up request fails in its declared ways."""
        if self.role is None:
            return {*self.statuses}
        if caller in REACHED_BY[self.role]:
            return {*self.statuses} - {401, 403, 429}
        return {403} if caller in REACHED_BY else {401}


def operations(app: FastAPI) -> list[Operation]:
    return [
        Operation(
            method=method.upper(),
            path=path,
            role=told.get("x-role"),
            statuses=frozenset(map(int, told["responses"])),
            has_body="requestBody" in told,
        )
        for path, methods in app.openapi()["paths"].items()
        for method, told in methods.items()
    ]


def routes(app: FastAPI) -> Iterator[BaseRoute]:
    """Every route, described or not, of every router that is included."""
    for route in app.routes:
        included = getattr(route, "original_router", None)
        yield from [route] if included is None else included.routes


@pytest.fixture
def app(settings: Settings) -> FastAPI:
    return create_app(settings)


def test_every_operation_has_a_role_or_is_open_on_purpose(app: FastAPI) -> None:
    without = {operation.name for operation in operations(app) if operation.role is None}
    assert without == OPEN


def test_every_route_is_guarded_or_open_on_purpose(app: FastAPI) -> None:
    paths = {operation.partition(" ")[2] for operation in OPEN} | UNDESCRIBED
    unguarded = {
        getattr(route, "path", repr(route))
        for route in routes(app)
        if not isinstance(route, AuthorizedRoute)
    }
    assert unguarded == paths


def test_guarded_operations_say_how_they_refuse(app: FastAPI) -> None:
    for path, methods in app.openapi()["paths"].items():
        for method, told in methods.items():
            if "x-role" in told:
                assert {"401", "403", "429"} <= told["responses"].keys(), (method, path)
                assert told["security"] == [{"ApiKey": []}], (method, path)
                assert "WWW-Authenticate" in told["responses"]["401"]["headers"], (method, path)
                assert "Retry-After" in told["responses"]["429"]["headers"], (method, path)


def secrets_on(database_url: str) -> dict[str, str | None]:
    """What each kind of caller presents."""
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
        "read": create_key(database_url, "read", "read").secret,
        "ingest": create_key(database_url, "ingest", "ingest").secret,
        "admin": admin,
    }


@contextmanager
def asking(
    strength: Strength, settings: Settings, bundle_store: Path, directory: Path
) -> Iterator[Ask]:
    """A service that knows the keys: in this process, or at full strength behind a real socket."""
    if not strength.is_full:
        with running(settings.model_copy(update={"requests_per_second": 1e6})) as client:
            yield client.request
        return
    with processes(directory, bundle_store) as start:
        server = start(
            KAIROS_DATABASE_URL=settings.database_url, KAIROS_REQUESTS_PER_SECOND="1000000"
        )
        yield server.http.request


def answer(ask: Ask, operation: Operation, secret: str | None) -> httpx.Response:
    """What a made-up but well-formed request for an operation is answered."""
    content: dict[str, Any] = {"json": {}} if operation.has_body else {}
    if secret is not None:
        content["headers"] = {"Authorization": f"Bearer {secret}"}
    return ask(operation.method, re.sub(r"\{\w+\}", "nothing-here", operation.path), **content)


def test_every_cell_holds(
    settings: Settings,
    database_url: str,
    bundle_store: Path,
    tmp_path: Path,
    strength: Strength,
    figures: Figures,
) -> None:
    upgrade(database_url)
    secrets = secrets_on(database_url)
    assert tuple(secrets) == CALLERS
    settings = settings.model_copy(update={"database_url": database_url})
    tried = operations(create_app(settings))
    wrong: dict[tuple[str, str], int] = {}
    with asking(strength, settings, bundle_store, tmp_path) as ask:
        for operation in tried:
            for caller, secret in secrets.items():
                status = answer(ask, operation, secret).status_code
                if status not in operation.expected(caller):
                    wrong[operation.name, caller] = status
    figures.keep(
        "R12",
        f"endpoint by caller, {database_url.partition(':')[0]}",
        operations=len(tried),
        callers=len(CALLERS),
        cells=len(tried) * len(CALLERS),
        wrong=len(wrong),
    )
    assert wrong == {}
