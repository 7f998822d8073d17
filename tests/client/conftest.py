"""Fixtures: both clients against the real application."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.settings import Settings
from tests.app import tiny_bundle
from tests.app.client import ADDRESS, Client, running
from tests.client.either_client import EitherClient, open_client
from tests.client.faulty_proxy import FaultyProxy, run_faulty_proxy


@pytest.fixture(scope="session")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with two bundles, the first of them current; built once."""
    root = tmp_path_factory.mktemp("published")
    tiny_bundle.publish(root, seed=1)
    tiny_bundle.publish(root, seed=2, activate=False)
    return root


@pytest.fixture(scope="module")
def application(published: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A running service on SQLite, shared by a module: each test has users of its own."""
    directory = tmp_path_factory.mktemp("service")
    settings = Settings(
        database_url=f"sqlite:///{directory / 'kairos.db'}",
        bundle_store=Path(shutil.copytree(published, directory / "bundles")),
        poll_interval_seconds=0.02,
    )
    with running(settings) as client:
        yield client


@pytest.fixture(params=["sync", "async"])
def kind(request: pytest.FixtureRequest) -> str:
    """The kind of client: each in turn."""
    return str(request.param)


@pytest.fixture
def kairos(kind: str, application: Client) -> Iterator[EitherClient]:
    """A client of each kind, connected to the application in this process."""
    with open_client(kind, ADDRESS, application=application) as kairos:
        yield kairos


@pytest.fixture
def proxy(application: Client) -> Iterator[FaultyProxy]:
    """The application behind a socket that injects faults."""
    with run_faulty_proxy(application) as proxy:
        yield proxy
