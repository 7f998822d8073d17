"""Runs `kairos doctor`, and prepares the databases that it checks."""

import json
from collections.abc import Callable
from typing import Any

from sqlalchemy import text
from typer.testing import CliRunner

from app.db.engine import open_engine
from app.keys.issuing import create_key
from cli.main import app
from migrations.run import upgrade
from model.clock import MICROSECONDS_PER_DAY, now
from tests.cli.world import kairos

Checks = dict[str, dict[str, Any]]
Environment = Callable[..., None]


def run_doctor(exit_code: int) -> Checks:
    """Returns the checks by name."""
    report = json.loads(kairos("doctor", "--json", exit_code=exit_code).stdout)
    assert report["ok"] == (exit_code == 0)
    return {check["name"]: check for check in report["checks"]}


def run_doctor_once() -> Checks:
    """Returns the checks by name, for any exit code."""
    report = json.loads(CliRunner().invoke(app, ["doctor", "--json"]).stdout)
    return {check["name"]: check for check in report["checks"]}


def failures(found: Checks) -> set[str]:
    return {name for name, check in found.items() if check["verdict"] == "failure"}


def warnings(found: Checks) -> set[str]:
    # The free space of this machine's disk is not under test.
    return {
        name
        for name, check in found.items()
        if check["verdict"] == "warning" and not name.endswith(".disk")
    }


def execute(database: str, *statements: str, **parameters: object) -> None:
    engine = open_engine(database)
    with engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement), parameters)
    engine.dispose()


def fill_database(database: str) -> None:
    """Creates the data of a working service: a key, an event, a run."""
    upgrade(database)
    create_key(database, "ops", "admin", expires_at=now() + 365 * MICROSECONDS_PER_DAY)
    execute(
        database,
        "INSERT INTO events (event_id, user_id, item_id, action, at, received_at) "
        "VALUES ('e', 'u', 'i', 'view', :now, :now)",
        "INSERT INTO training_runs (run_id, started_at, finished_at, result) "
        "VALUES ('run-1', :now, :now, 'promoted')",
        now=now(),
    )
