"""A site, started once for the tests that leave it unchanged."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.app.conftest import postgresql_server, published  # noqa: F401 - fixtures
from tests.deployment.proxy import Site, start_site


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory, published: Path) -> Iterator[Site]:  # noqa: F811
    """Two replicas behind the proxy."""
    with start_site(tmp_path_factory.mktemp("site"), published) as running:
        yield running
