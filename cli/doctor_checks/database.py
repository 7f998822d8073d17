"""The database: is it there, of this version, durable, writable, with room to grow?"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Engine
from sqlalchemy.exc import DatabaseError
from sqlalchemy.orm import Session

from app.db.engine import WRITES, open_engine, parse_url
from app.errors import DatabaseUnavailableError
from app.health.repository import HealthRepository
from app.settings import MEBIBYTE
from cli.doctor_checks.check import Check, Checks, broken, doubtful, well
from migrations.run import head, revision, revisions

_LITTLE, _TOO_LITTLE = 1024 * MEBIBYTE, 100 * MEBIBYTE
_MIGRATE = "run kairos migrate"


@contextmanager
def reading(database_url: str) -> Iterator[Session]:
    """A transaction to look around in."""
    engine = open_engine(database_url)
    try:
        with _rolled_back(engine) as session:
            yield session
    finally:
        engine.dispose()


@contextmanager
def _rolled_back(engine: Engine) -> Iterator[Session]:
    with Session(engine) as session:
        yield session
        session.rollback()


def checks_of_database(database_url: str) -> Checks:
    """From the outside in; ends where it goes no further."""
    shown = parse_url(database_url).render_as_string(hide_password=True)
    try:
        at = revision(database_url)
    except DatabaseUnavailableError as error:
        yield broken("database", f"{shown}: {error}", "start it, or correct KAIROS_DATABASE_URL")
        return
    yield well("database", f"{shown} answers" if at else f"{shown} can be reached")
    yield _schema(at)
    if at is None:
        return
    with reading(database_url) as session:
        yield _durability(HealthRepository(session))
    yield _writing(database_url)
    url = parse_url(database_url)
    if url.get_backend_name() == "sqlite":
        yield free_space("database.disk", Path(str(url.database)).resolve().parent)


def _schema(at: str | None) -> Check:
    if at is None:
        return broken("database.schema", "the database was never migrated", _MIGRATE)
    if at == head():
        return well("database.schema", f"at revision {at}")
    if at in revisions():
        return broken("database.schema", f"at {at}, but this version needs {head()}", _MIGRATE)
    return doubtful(
        "database.schema",
        f"at {at}, which is newer than {head()}, the newest this version knows",
        "finish the rolling update; this version works meanwhile",
    )


def _durability(database: HealthRepository) -> Check:
    durability = database.durability()
    told = ", ".join(f"{name} {value}" for name, value in durability.settings.items())
    if durability.is_durable:
        return well("database.durability", told)
    return broken(
        "database.durability",
        f"{told}: events that were acknowledged can be lost in a power cut",
        "set fsync and full_page_writes to on; SQLite needs a local disk",
    )


def _writing(database_url: str) -> Check:
    engine = open_engine(database_url)
    try:
        with _rolled_back(engine.execution_options(**WRITES)) as session:
            HealthRepository(session).try_writing()
    except DatabaseError as error:
        return broken(
            "database.writing",
            f"nothing can be written: {error.orig}",
            "give this user the right to write, or name the primary in KAIROS_DATABASE_URL",
        )
    finally:
        engine.dispose()
    return well("database.writing", "can be written to")


def free_space(name: str, directory: Path) -> Check:
    """Whether there is room to grow where a directory is."""
    free = shutil.disk_usage(directory).free
    told = f"{free / (1024 * MEBIBYTE):.1f} GiB free at {directory}"
    remedy = "make room, or move it to a larger disk"
    if free < _TOO_LITTLE:
        return broken(name, told, remedy)
    return doubtful(name, told, remedy) if free < _LITTLE else well(name, told)
