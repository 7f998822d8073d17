"""Fixtures of the promises: each promise of the service is a test with measured figures."""

import pytest

from tests.app.conftest import (  # noqa: F401 - pytest resolves fixtures by name
    bundle_store,
    client,
    client_on_either,
    database_url,
    migrated_database_url,
    migrated_postgresql_url,
    migrated_sqlite_url,
    postgresql_server,
    postgresql_template,
    postgresql_url,
    published,
    settings,
    sqlite_template,
    sqlite_url,
    stoppable_postgresql,
)
from tests.promises.figures import RECORDS, Figures
from tests.promises.strength import Strength


@pytest.fixture(scope="session")
def strength(request: pytest.FixtureRequest) -> Strength:
    """The size of this run: short, or full with `--full-strength`."""
    return Strength(is_full=request.config.getoption("full_strength"))


@pytest.fixture(scope="session")
def figures(strength: Strength) -> Figures:
    """The records of measurements, written at full strength only."""
    return Figures(RECORDS if strength.is_full else None)
