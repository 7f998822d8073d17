"""Both clients, asked alike, against the real application."""

from collections.abc import Iterator

import pytest

from tests.app.client import ADDRESS, Client
from tests.app.conftest import (  # noqa: F401 - fixtures
    bundle_store,
    client,
    published,
    settings,
    sqlite_url,
)
from tests.client.asking import Asking, asking
from tests.client.flaky import Flaky, flaky_service


@pytest.fixture(params=["blocking", "awaiting"])
def either(request: pytest.FixtureRequest) -> str:
    """The name of either client in turn."""
    return str(request.param)


@pytest.fixture
def kairos(either: str, client: Client) -> Iterator[Asking]:  # noqa: F811
    """Either client in turn, in the process of the application."""
    with asking(either, ADDRESS, inside=client) as kairos:
        yield kairos


@pytest.fixture
def flaky(client: Client) -> Iterator[Flaky]:  # noqa: F811
    """The application behind a socket whose mishaps a test chooses."""
    with flaky_service(client) as flaky:
        yield flaky
