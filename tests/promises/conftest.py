"""The promises of the service, each a test with a figure."""

import pytest

from tests.app.conftest import (  # noqa: F401 - a fixture is found where it is named
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
    """How hard to try."""
    return Strength(is_full=request.config.getoption("full_strength"))


@pytest.fixture(scope="session")
def figures(strength: Strength) -> Figures:
    """Where to say what was measured."""
    return Figures(RECORDS if strength.is_full else None)
