"""Checks of the database: connection, schema, durability, write access, free disk space."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Engine
from sqlalchemy.orm import Session

from app.db.engine import WRITES, open_engine, parse_url
from app.errors import DatabaseUnavailableError
from app.health.repository import HealthRepository
from app.settings import MEBIBYTE
from cli.doctor.check import Check, Checks, failure, ok, warning
from migrations.run import get_head, list_revisions, read_revision
from model.errors import format_error

_WARNING_BYTES, _FAILURE_BYTES = 1024 * MEBIBYTE, 100 * MEBIBYTE
_MIGRATE = "run kairos migrate"


@contextmanager
def open_session(database_url: str) -> Iterator[Session]:
    """Open a session that is rolled back at the end."""
    engine = open_engine(database_url)
    try:
        with _open_rolled_back_session(engine) as session:
            yield session
    finally:
        engine.dispose()


@contextmanager
def _open_rolled_back_session(engine: Engine) -> Iterator[Session]:
    with Session(engine) as session:
        yield session
        session.rollback()


def check_database(database_url: str) -> Checks:
    """Check the connection first; end at the first check that the others depend on."""
    shown = parse_url(database_url).render_as_string(hide_password=True)
    try:
        current = read_revision(database_url)
    except DatabaseUnavailableError as error:
        yield failure(
            "database",
            f"{shown}: {format_error(error)}",
            "start it, or correct KAIROS_DATABASE_URL",
        )
        return
    yield ok("database", f"{shown} is reachable")
    yield _check_schema(current)
    if current is None:
        return
    with open_session(database_url) as session:
        yield _check_durability(HealthRepository(session))
    yield _check_writing(database_url)
    url = parse_url(database_url)
    if url.get_backend_name() == "sqlite":
        yield check_free_space("database.disk", Path(str(url.database)).resolve().parent)


def _check_schema(current: str | None) -> Check:
    name = "database.schema"
    if current is None:
        return failure(name, "the database was never migrated", _MIGRATE)
    if current == get_head():
        return ok(name, f"at revision {current}")
    if current in list_revisions():
        return failure(name, f"at {current}, but this version needs {get_head()}", _MIGRATE)
    return warning(
        name,
        f"at {current}, which is newer than {get_head()}, the newest revision of this version",
        "finish the rolling update; this version works meanwhile",
    )


def _check_durability(repository: HealthRepository) -> Check:
    durability = repository.read_durability()
    finding = ", ".join(f"{name} {value}" for name, value in durability.settings.items())
    if durability.is_durable:
        return ok("database.durability", finding)
    return failure(
        "database.durability",
        f"{finding}: acknowledged events can be lost in a power failure",
        "set fsync and full_page_writes to on; SQLite needs a local disk",
    )


def _check_writing(database_url: str) -> Check:
    engine = open_engine(database_url)
    try:
        with _open_rolled_back_session(engine.execution_options(**WRITES)) as session:
            HealthRepository(session).try_writing()
    except DatabaseUnavailableError as error:
        return failure(
            "database.writing",
            f"not writable: {format_error(error)}",
            "grant this user write access, or name the primary in KAIROS_DATABASE_URL",
        )
    finally:
        engine.dispose()
    return ok("database.writing", "writable")


def check_free_space(name: str, directory: Path) -> Check:
    """Check the free disk space of a directory."""
    free = shutil.disk_usage(directory).free
    finding = f"{free / (1024 * MEBIBYTE):.1f} GiB free at {directory}"
    remedy = "free some space, or move it to a larger disk"
    if free < _FAILURE_BYTES:
        return failure(name, finding, remedy)
    return warning(name, finding, remedy) if free < _WARNING_BYTES else ok(name, finding)
