"""Both clients, asked alike, against the real application."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.settings import Settings
from tests.app import tiny_bundle
from tests.app.client import ADDRESS, Client, running
from tests.client.asking import Asking, asking
from tests.client.flaky import Flaky, flaky_service


@pytest.fixture(scope="session")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with two bundles, the first of them current; built once."""
    root = tmp_path_factory.mktemp("published")
    tiny_bundle.publish(root, seed=1)
    tiny_bundle.publish(root, seed=2, activate=False)
    return root


@pytest.fixture(scope="module")
def application(published: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A running service on SQLite, shared: each test has users of its own."""
    directory = tmp_path_factory.mktemp("service")
    settings = Settings(
        database_url=f"sqlite:///{directory / 'kairos.db'}",
        bundle_store=Path(shutil.copytree(published, directory / "bundles")),
        poll_interval_seconds=0.02,
    )
    with running(settings) as client:
        yield client


@pytest.fixture(params=["blocking", "awaiting"])
def either(request: pytest.FixtureRequest) -> str:
    """The name of either client in turn."""
    return str(request.param)


@pytest.fixture
def kairos(either: str, application: Client) -> Iterator[Asking]:
    """Either client in turn, in the process of the application."""
    with asking(either, ADDRESS, inside=application) as kairos:
        yield kairos


@pytest.fixture
def flaky(application: Client) -> Iterator[Flaky]:
    """The application behind a socket whose mishaps a test chooses."""
    with flaky_service(application) as flaky:
        yield flaky
