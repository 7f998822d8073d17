"""Fixtures: a working service for `kairos doctor`, in the environment of the command."""

from pathlib import Path

import pytest

from tests.app.conftest import (  # noqa: F401 - a fixture is found where it is named
    bundle_store,
    database_url,
    postgresql_server,
    postgresql_url,
    published,
    sqlite_url,
    stoppable_postgresql,
)
from tests.cli.doctor.checks import Environment, fill_database


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch, bundle_store: Path) -> Environment:  # noqa: F811
    """Sets environment variables of the settings."""
    monkeypatch.setenv("KAIROS_BUNDLE_STORE", str(bundle_store))
    # Each test opens and measures bundles; those of 20 items need few queries.
    monkeypatch.setattr("cli.doctor.bundles._QUERIES", 4)

    def change(**settings: str) -> None:
        for name, value in settings.items():
            monkeypatch.setenv(f"KAIROS_{name.upper()}", value)

    return change


@pytest.fixture
def service_database(environment: Environment, database_url: str) -> str:  # noqa: F811
    """A working service, on each kind of database."""
    fill_database(database_url)
    environment(database_url=database_url)
    return database_url


@pytest.fixture
def database(environment: Environment, sqlite_url: str) -> str:  # noqa: F811
    """A working service, on SQLite."""
    fill_database(sqlite_url)
    environment(database_url=sqlite_url)
    return sqlite_url
