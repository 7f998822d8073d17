"""Log records: their form, and the data that they must not contain."""

import json
import logging
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any, Literal

import pytest
import structlog
from sqlalchemy import make_url

from app.errors import DatabaseUnavailableError
from app.observability.logs import configure_logs
from app.settings import Settings
from tests.app.client import running

SECRET = "must-not-be-logged"


@pytest.fixture(autouse=True)
def restored_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    logging.getLogger("httpx").setLevel(logging.WARNING)  # the client's own log contains paths
    yield
    logging.getLogger("httpx").setLevel(logging.NOTSET)
    root.handlers, root.level = handlers, level
    structlog.reset_defaults()


@pytest.mark.parametrize("log_format", ["console", "json"])
def test_a_defect_is_logged_without_the_users_data(
    settings: Settings,
    log_format: Literal["console", "json"],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def fail(_: object, user_id: str, **__: Any) -> None:
        raise RuntimeError("a defect")

    monkeypatch.setattr("app.users.router.read_user_history", fail)
    configure_logs(log_format, "info")
    with running(settings) as client:
        assert client.get(f"/v1/users/{SECRET}").status_code == 500
    logged = capsys.readouterr().err
    assert "request_failed" in logged
    assert "in fail" in logged
    assert "RuntimeError: (message withheld" in logged
    assert SECRET not in logged


def test_a_failing_statement_is_logged_without_its_parameters(
    settings: Settings, sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    configure_logs("json", "info")
    with closing(sqlite3.connect(str(make_url(sqlite_url).database))) as connection:
        connection.execute("CREATE TABLE unrelated (number)")
    unmigrated = settings.model_copy(
        update={"database_url": sqlite_url, "migrate_on_start": False, "open_to_loopback": True}
    )
    with running(unmigrated) as client:
        assert client.get(f"/v1/users/{SECRET}").status_code == 503
    logged = capsys.readouterr().err
    assert "no such table" in logged
    assert SECRET not in logged


def test_a_damaged_id_is_not_logged(
    settings: Settings, migrated_sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    configure_logs("json", "info")
    # The driver's own text holds the value that it cannot decode.
    damaged = SECRET.encode() + b"\xff"
    with closing(sqlite3.connect(str(make_url(migrated_sqlite_url).database))) as connection:
        connection.execute(
            "INSERT INTO events (event_id, user_id, item_id, action, at, received_at) "
            "VALUES ('e1', CAST(? AS TEXT), 'i1', 'view', 0, 0)",
            (damaged,),
        )
        connection.commit()
    with running(settings.model_copy(update={"database_url": migrated_sqlite_url})) as client:
        assert client.get("/v1/users").status_code == 503
    logged = capsys.readouterr().err
    assert "Could not decode to UTF-8 column 'user_id'" in logged
    assert SECRET not in logged


def test_a_failure_that_kairos_found_is_logged_with_its_text(
    settings: Settings, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(_: object, user_id: str, **__: Any) -> None:
        raise DatabaseUnavailableError("the database must be at its path")

    monkeypatch.setattr("app.users.router.read_user_history", fail)
    configure_logs("json", "info")
    with running(settings) as client:
        assert client.get("/v1/users/u1").status_code == 503
    assert '"error": "the database must be at its path"' in capsys.readouterr().err


def test_json_logs_are_an_object_per_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure_logs("json", "info")
    structlog.get_logger("ours").info("one", number=1)
    logging.getLogger("theirs").warning("two %s\nlines", "or more")
    structlog.get_logger("ours").debug("not severe enough")
    ours, theirs = (json.loads(line) for line in capsys.readouterr().err.splitlines())
    assert (ours["event"], ours["number"], ours["level"]) == ("one", 1, "info")
    assert (theirs["event"], theirs["logger"]) == ("two or more\nlines", "theirs")
