"""No user id, item id or key is logged, for any request or failure."""

import json
import logging
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import pytest
import structlog
from prometheus_client import generate_latest
from sqlalchemy import text
from sqlalchemy.orm import Session

from app.context import AppContext
from app.observability.logs import configure_logs
from app.settings import Settings
from tests.app.client import running
from tests.architecture.repository import document
from tests.promises.asgi_client import (
    AsgiClient,
    Headers,
    RawRequest,
    encode_json,
    list_operations,
)
from tests.promises.hostile import JSON, build_example, fill_path

pytestmark = pytest.mark.slow

DESCRIPTION: dict[str, Any] = json.loads(document("docs/openapi.json"))
MARKER = "must-not-be-logged"
PATIENT = {
    "database_timeout_seconds": 60.0,
    "inference_patience_seconds": 60.0,
    "requests_per_second": 1_000_000.0,
}
"""No response depends on the machine's load: one that is shed is not the operation's."""
KEY = f"kairos_0123456789abcdef_{MARKER:x<43}"


@pytest.fixture(autouse=True)
def restored_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    yield
    root.handlers, root.level = handlers, level
    structlog.reset_defaults()


def build_marked_requests(description: Mapping[str, Any]) -> Iterator[tuple[str, RawRequest]]:
    """Build requests to every operation with the marker in every text."""
    marker = MARKER.encode()
    for label, operation in list_operations(description).items():
        method, path = label.split()
        parameters = operation.get("parameters", [])
        target = fill_path(path, {one["name"]: marker for one in parameters if one["in"] == "path"})
        query = b"&".join(
            one["name"].encode() + b"=" + (b"2" if "integer" in str(one["schema"]) else marker)
            for one in parameters
            if one["in"] == "query"
        )
        headers: Headers = ((b"user-agent", marker), (b"x-request-id", marker + b"?"))
        if "requestBody" not in operation:
            yield label, RawRequest(method, target, headers)
            yield label, RawRequest(method, target + b"?" + query, headers)
            yield label, RawRequest(method, target + b"?" + marker, headers)
            continue
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        body = encode_json(build_example(schema, description, text=MARKER))
        for sent in (
            body,
            body[:-1],
            encode_json(MARKER),
            b'{"' + marker + b'": 1}',
            b"[" + body + b"]",
        ):
            yield label, RawRequest(method, target, (*JSON, *headers), sent)
        yield label, RawRequest(method, target, ((b"content-type", marker), *headers), body)


def build_unknown_paths() -> Iterator[RawRequest]:
    marker = MARKER.encode()
    for folder in (
        b"/",
        b"/v1/",
        b"/v1/models/",
        b"/dashboard/",
        b"/docs/",
        b"/health/",
        b"/openapi.json/",
    ):
        for method in ("GET", "POST", "HEAD", "BREW", MARKER.upper()):
            yield RawRequest(method, folder + marker)


def send_all(asgi_client: AsgiClient) -> dict[str, set[int]]:
    """Send all of the above; returns the statuses by operation."""
    met: dict[str, set[int]] = {}
    for label, request in build_marked_requests(DESCRIPTION):
        met.setdefault(label, set()).add(asgi_client.send(request).status)
        wrong_key = ((b"authorization", b"Bearer " + KEY.encode()), *request.headers)
        asgi_client.send(RawRequest(request.method, request.target, wrong_key, request.body))
    for request in build_unknown_paths():
        asgi_client.send(request)
    return met


def assert_not_logged(log: str, asgi_client: AsgiClient) -> None:
    lines = log.splitlines()
    assert len(lines) > len(list_operations(DESCRIPTION))
    assert [line for line in lines if MARKER.lower() in line.lower()] == []
    # The id of a key is logged with changes; the rest of it is secret.
    secret = asgi_client.key.removeprefix("kairos_").partition("_")[2]
    assert [line for line in lines if secret in line] == []


@pytest.mark.parametrize("log_format", ["console", "json"])
def test_no_request_data_is_logged(
    settings: Settings,
    database_url: str,
    log_format: Literal["console", "json"],
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure_logs(log_format, "info")
    with running(settings.model_copy(update={"database_url": database_url, **PATIENT})) as client:
        asgi_client = AsgiClient(client)
        met = send_all(asgi_client)
        metrics = generate_latest(client.app.state.context.metrics.registry).decode()
    assert_not_logged(capsys.readouterr().err, asgi_client)
    assert MARKER.lower() not in metrics.lower()
    assert {
        label for label, statuses in met.items() if {200, 204, 404, 409} & statuses
    } == met.keys()


@pytest.mark.parametrize("log_format", ["console", "json"])
def test_no_request_data_is_logged_when_everything_crashes(
    settings: Settings,
    database_url: str,
    log_format: Literal["console", "json"],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    configure_logs(log_format, "info")

    async def fail(*_: object) -> None:
        try:
            raise KeyError(MARKER)
        except KeyError as error:
            raise RuntimeError(f"{MARKER} was not found") from error

    with running(settings.model_copy(update={"database_url": database_url, **PATIENT})) as client:
        asgi_client = AsgiClient(client)
        for method in ("infer", "database.read", "database.write"):
            owner = AppContext if method == "infer" else type(client.app.state.context.database)
            monkeypatch.setattr(owner, method.rpartition(".")[2], fail)
        met = send_all(asgi_client)
        monkeypatch.undo()
    log = capsys.readouterr().err
    assert_not_logged(log, asgi_client)
    assert "RuntimeError: (message withheld" in log
    assert sum(500 in statuses for statuses in met.values()) > len(met) / 3


def test_a_row_that_breaks_a_constraint_is_not_logged(
    settings: Settings,
    database_url: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    configure_logs("json", "info")

    def break_a_constraint(session: Session) -> None:
        insert = text("INSERT INTO erased_users VALUES (:a, 1)")
        session.execute(insert, {"a": MARKER})
        session.execute(insert, {"a": MARKER})

    with running(settings.model_copy(update={"database_url": database_url, **PATIENT})) as client:
        write = client.app.state.context.database.write

        async def fail(*_: object, **__: object) -> None:
            await write(break_a_constraint)

        monkeypatch.setattr("app.items.router.store_items", fail)
        sent = {"items": [{"item_id": MARKER}]}
        assert client.put("/v1/items", sent).status_code == 500
    log = capsys.readouterr().err
    assert "sqlalchemy.exc.IntegrityError" in log
    assert MARKER not in log
