"""A site, started once for the tests that leave it as it was."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.app.conftest import published  # noqa: F401 - a fixture is found where it is named
from tests.deployment.proxy import Site, site


@pytest.fixture(scope="session")
def behind(tmp_path_factory: pytest.TempPathFactory, published: Path) -> Iterator[Site]:  # noqa: F811
    """Two replicas behind the proxy."""
    with site(tmp_path_factory.mktemp("site"), published) as running:
        yield running
