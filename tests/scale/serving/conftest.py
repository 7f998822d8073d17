"""What several machines share: an object store."""

from collections.abc import Iterator

import pytest

from tests.app.conftest import (  # noqa: F401 - fixtures
    migrated_postgresql_url,
    postgresql_server,
    postgresql_template,
)
from tests.scale.serving.object_store import ObjectStore, run_object_store


@pytest.fixture(scope="session")
def object_store() -> Iterator[ObjectStore]:
    """An S3-compatible server with an empty bucket."""
    with run_object_store() as store:
        yield store
