"""No id of a user or an item and no key is in the log, whatever is asked and goes wrong."""

import json
import logging
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import pytest
import structlog
from sqlalchemy import text
from sqlalchemy.orm import Session

from app.context import AppContext
from app.observability.logs import configure_logs
from app.settings import Settings
from tests.app.client import running
from tests.architecture.repository import document
from tests.promises.asked import Asked, Asking, Headers, as_json, operations
from tests.promises.hostile import JSON, example, filled

pytestmark = pytest.mark.slow

DESCRIPTION: dict[str, Any] = json.loads(document("docs/openapi.json"))
MARKER = "nobody-may-read-this"
KEY = f"kairos_0123456789abcdef_{MARKER:x<43}"


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    yield
    root.handlers, root.level = handlers, level
    structlog.reset_defaults()


def naming_the_marker(description: Mapping[str, Any]) -> Iterator[tuple[str, Asked]]:
    """Requests to every operation that hold the marker wherever they may hold a text."""
    marker = MARKER.encode()
    for label, operation in operations(description).items():
        method, path = label.split()
        parameters = operation.get("parameters", [])
        target = filled(path, {one["name"]: marker for one in parameters if one["in"] == "path"})
        query = b"&".join(
            one["name"].encode() + b"=" + (b"2" if "integer" in str(one["schema"]) else marker)
            for one in parameters
            if one["in"] == "query"
        )
        headers: Headers = ((b"user-agent", marker), (b"x-request-id", marker + b"?"))
        if "requestBody" not in operation:
            yield label, Asked(method, target, headers)
            yield label, Asked(method, target + b"?" + query, headers)
            yield label, Asked(method, target + b"?" + marker, headers)
            continue
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        body = as_json(example(schema, description, text=MARKER))
        for sent in (
            body,
            body[:-1],
            as_json(MARKER),
            b'{"' + marker + b'": 1}',
            b"[" + body + b"]",
        ):
            yield label, Asked(method, target, (*JSON, *headers), sent)
        yield label, Asked(method, target, ((b"content-type", marker), *headers), body)


def paths_to_nowhere() -> Iterator[Asked]:
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
            yield Asked(method, folder + marker)


def ask_everything(asking: Asking) -> dict[str, set[int]]:
    """Ask all of the above; answers the statuses by operation."""
    met: dict[str, set[int]] = {}
    for label, asked in naming_the_marker(DESCRIPTION):
        met.setdefault(label, set()).add(asking.send(asked).status)
        wrong_key = ((b"authorization", b"Bearer " + KEY.encode()), *asked.headers)
        asking.send(Asked(asked.method, asked.target, wrong_key, asked.body))
    for asked in paths_to_nowhere():
        asking.send(asked)
    return met


def require_silence(said: str, asking: Asking) -> None:
    lines = said.splitlines()
    assert len(lines) > len(operations(DESCRIPTION))
    assert [line for line in lines if MARKER.lower() in line.lower()] == []
    # Its id says who changed something, and opens nothing; the rest is secret.
    secret = asking.key.removeprefix("kairos_").partition("_")[2]
    assert [line for line in lines if secret in line] == []


@pytest.mark.parametrize("log_format", ["console", "json"])
def test_no_request_data_is_logged(
    settings: Settings,
    database_url: str,
    log_format: Literal["console", "json"],
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure_logs(log_format, "info")
    with running(settings.model_copy(update={"database_url": database_url})) as client:
        asking = Asking(client)
        met = ask_everything(asking)
    require_silence(capsys.readouterr().err, asking)
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

    with running(settings.model_copy(update={"database_url": database_url})) as client:
        asking = Asking(client)
        for method in ("infer", "database.read", "database.write"):
            owner = AppContext if method == "infer" else type(client.app.state.context.database)
            monkeypatch.setattr(owner, method.rpartition(".")[2], fail)
        met = ask_everything(asking)
        monkeypatch.undo()
    said = capsys.readouterr().err
    require_silence(said, asking)
    assert "RuntimeError: (message withheld" in said
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

    with running(settings.model_copy(update={"database_url": database_url})) as client:
        write = client.app.state.context.database.write

        async def fail(*_: object, **__: object) -> None:
            await write(break_a_constraint)

        monkeypatch.setattr("app.items.router.store_items", fail)
        sent = {"items": [{"item_id": MARKER}]}
        assert client.put("/v1/items", sent).status_code == 500
    said = capsys.readouterr().err
    assert "sqlalchemy.exc.IntegrityError" in said
    assert MARKER not in said
