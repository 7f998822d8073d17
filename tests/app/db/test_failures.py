"""Failures of real databases: which can pass by themselves, and which are defects of Kairos."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import Connection, Engine, select, text
from sqlalchemy.exc import IntegrityError, OperationalError, ProgrammingError
from sqlalchemy.orm import Session

from app.db.engine import WRITES, open_engine
from app.db.failures import classify, translate_failures
from app.db.tables import StoredItem
from app.errors import (
    DatabaseConflictError,
    DatabaseDamagedError,
    DatabaseFileError,
    DatabaseReadOnlyError,
    DatabaseUnavailableError,
    SchemaMissingError,
)

INSERT = "INSERT INTO erased_users (digest, erased_at) VALUES ('0', 0)"


@pytest.fixture
def engine(migrated_url: str) -> Iterator[Engine]:
    engine = open_engine(migrated_url, connections=2)
    yield engine
    engine.dispose()


@pytest.fixture(params=["sqlite", "postgresql"])
def migrated_url(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(f"migrated_{request.param}_url"))


def fail(url: str, *statements: str) -> DatabaseUnavailableError:
    """Execute statements in one transaction, and return the failure of the last."""
    engine = open_engine(url)
    with engine.connect().execution_options(**WRITES) as connection:
        for statement in statements[:-1]:
            connection.execute(text(statement))
        with pytest.raises(DatabaseUnavailableError) as failure:
            connection.execute(text(statements[-1]))
    engine.dispose()
    assert isinstance(failure.value.__cause__, sqlite3.Error | psycopg.Error)
    return failure.value


def end_sessions(url: str) -> None:
    """End every other session of a PostgreSQL database, as its administrator may."""
    with psycopg.connect(url) as other:
        other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


def test_a_missing_table_or_column_is_a_missing_schema(migrated_url: str) -> None:
    assert type(fail(migrated_url, "SELECT * FROM future")) is SchemaMissingError
    assert type(fail(migrated_url, "SELECT future FROM events")) is SchemaMissingError


def test_a_violated_constraint_is_a_defect(engine: Engine) -> None:
    with engine.connect() as connection, pytest.raises(IntegrityError):
        connection.execute(text("INSERT INTO erased_users (digest) VALUES (NULL)"))


def test_a_wrong_statement_is_a_defect(engine: Engine) -> None:
    with engine.connect() as connection, pytest.raises((OperationalError, ProgrammingError)):
        connection.execute(text("SELEKT 1"))


def test_a_database_that_became_read_only_is_named_so(migrated_postgresql_url: str) -> None:
    failure = fail(migrated_postgresql_url, "SET TRANSACTION READ ONLY", INSERT)
    assert type(failure) is DatabaseReadOnlyError
    assert "cannot execute INSERT in a read-only transaction" in failure.__notes__[0]


def test_a_read_only_sqlite_file_is_named_so(migrated_sqlite_url: str) -> None:
    engine = open_engine(migrated_sqlite_url)
    with engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA query_only=ON")
        with pytest.raises(DatabaseReadOnlyError):
            connection.exec_driver_sql(INSERT)
    engine.dispose()


@pytest.mark.parametrize(
    "statements",
    [
        pytest.param(("SET LOCAL statement_timeout = 1", "SELECT pg_sleep(60)"), id="timeout"),
        pytest.param(("SELECT pg_terminate_backend(pg_backend_pid())",), id="ended-by-the-server"),
    ],
)
def test_what_passes_by_itself_is_unavailable(
    migrated_postgresql_url: str, statements: tuple[str, ...]
) -> None:
    assert type(fail(migrated_postgresql_url, *statements)) is DatabaseUnavailableError


def test_a_lock_that_is_not_released_is_unavailable(migrated_postgresql_url: str) -> None:
    with psycopg.connect(migrated_postgresql_url) as other:
        other.execute("LOCK TABLE erased_users IN ACCESS EXCLUSIVE MODE")
        failure = fail(migrated_postgresql_url, "SET LOCAL lock_timeout = 1", INSERT)
    assert type(failure) is DatabaseUnavailableError


def test_a_serialization_failure_can_be_repeated(migrated_postgresql_url: str) -> None:
    isolation = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"
    update = "UPDATE alembic_version SET version_num = version_num"
    with psycopg.connect(migrated_postgresql_url) as other:
        engine = open_engine(migrated_postgresql_url)
        with engine.connect() as connection:
            connection.execute(text(isolation))
            connection.execute(text("SELECT * FROM alembic_version"))
            other.execute(update)
            other.commit()
            with pytest.raises(DatabaseConflictError):
                connection.execute(text(update))
        engine.dispose()


@pytest.mark.parametrize(
    ("sqlstate", "kind"),
    [
        ("53100", DatabaseUnavailableError),
        ("53200", DatabaseUnavailableError),
        ("53300", DatabaseUnavailableError),
        ("57P01", DatabaseUnavailableError),
        ("57P02", DatabaseUnavailableError),
        ("57P03", DatabaseUnavailableError),
        ("58030", DatabaseUnavailableError),
        ("08006", DatabaseUnavailableError),
        ("28P01", DatabaseUnavailableError),
        ("40P01", DatabaseConflictError),
        ("XX001", DatabaseDamagedError),
        ("XX002", DatabaseDamagedError),
        ("XX000", DatabaseUnavailableError),
        ("26000", DatabaseUnavailableError),
        ("55000", DatabaseUnavailableError),  # no entry, but operational
        ("22001", None),
        ("22P02", None),
        ("23505", None),
        ("25P02", None),
        ("40002", None),
        ("42601", None),
        ("42804", None),
        ("54001", None),
    ],
)
def test_the_code_of_postgresql_decides(
    sqlstate: str, kind: type[DatabaseUnavailableError] | None
) -> None:
    failure = classify(psycopg.errors.lookup(sqlstate)("x"))
    assert (None if failure is None else type(failure)) is kind


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("SQLITE_IOERR_FSYNC", DatabaseFileError),
        ("SQLITE_FULL", DatabaseUnavailableError),
        ("SQLITE_BUSY_SNAPSHOT", DatabaseUnavailableError),
        ("SQLITE_CANTOPEN_ISDIR", DatabaseUnavailableError),
        ("SQLITE_NOMEM", DatabaseUnavailableError),
        ("SQLITE_READONLY_DBMOVED", DatabaseReadOnlyError),
        ("SQLITE_CORRUPT_INDEX", DatabaseDamagedError),
        ("SQLITE_SCHEMA", DatabaseUnavailableError),  # no entry, but operational
        ("SQLITE_ERROR", None),
        ("SQLITE_CONSTRAINT_UNIQUE", None),
        ("SQLITE_MISMATCH", None),
        ("SQLITE_TOOBIG", None),
    ],
)
def test_the_code_of_sqlite_decides(code: str, kind: type[DatabaseUnavailableError] | None) -> None:
    error = sqlite3.OperationalError("x")
    error.sqlite_errorcode = getattr(sqlite3, code)
    failure = classify(error)
    assert (None if failure is None else type(failure)) is kind


def test_a_transaction_that_took_too_long_is_unavailable() -> None:
    # PostgreSQL 17 added the code; older drivers have no class for it.
    class TransactionTimeout(psycopg.InternalError):
        sqlstate = "25P04"

    assert type(classify(TransactionTimeout("x"))) is DatabaseUnavailableError


def test_an_operational_error_without_a_code_is_unavailable() -> None:
    assert type(classify(sqlite3.OperationalError("x"))) is DatabaseUnavailableError
    assert classify(sqlite3.ProgrammingError("Cannot operate on a closed database.")) is None
    assert classify(sqlite3.InterfaceError("x")) is None


def test_a_text_that_is_no_utf8_is_damage(migrated_sqlite_url: str) -> None:
    engine = open_engine(migrated_sqlite_url)
    with engine.connect() as connection:
        connection.exec_driver_sql(
            "INSERT INTO items (item_id, title, categories, updated_at) "
            "VALUES ('i1', CAST(x'736563726574ff' AS TEXT), '[]', 0)"
        )
        with pytest.raises(DatabaseDamagedError, match="kairos restore") as failure:
            connection.exec_driver_sql("SELECT title FROM items").all()
    engine.dispose()
    assert failure.value.__notes__ == ["Could not decode to UTF-8 column 'title'"]


def test_a_column_that_is_no_json_is_damage(engine: Engine) -> None:
    # PostgreSQL checks the syntax of JSON, but not what its escapes stand for.
    broken = {"sqlite": '["secret', "postgresql": r'["secret \ud800"]'}[engine.dialect.name]
    insert = "INSERT INTO items (item_id, categories, updated_at) VALUES ('i1', :broken, 0)"
    with Session(engine) as session:
        session.execute(text(insert), {"broken": broken})
        with pytest.raises(DatabaseDamagedError, match="kairos restore") as failure:
            session.scalars(select(StoredItem)).all()
    assert "secret" not in f"{failure.value} {failure.value.__notes__}"


def test_json_that_sqlite_cannot_read_is_damage(migrated_sqlite_url: str) -> None:
    failure = fail(migrated_sqlite_url, "SELECT * FROM json_each('[1')")
    assert type(failure) is DatabaseDamagedError


@pytest.mark.parametrize("content", [b"no database" * 1000, b"SQLite format 3\0" + b"\xff" * 8000])
def test_a_file_that_is_no_database_is_damaged(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "kairos.db").write_bytes(content)
    engine = open_engine(f"sqlite:///{tmp_path}/kairos.db")
    with pytest.raises(DatabaseDamagedError, match="kairos restore"):
        engine.connect()
    engine.dispose()


def test_a_damaged_page_is_found_when_it_is_read(migrated_sqlite_url: str) -> None:
    file = Path(migrated_sqlite_url.removeprefix("sqlite:///"))
    with closing(sqlite3.connect(file)) as connection:
        (page,) = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'events'"
        ).fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    with file.open("r+b") as stream:
        stream.seek((page - 1) * size)
        stream.write(b"\xff" * size)
    assert type(fail(migrated_sqlite_url, "SELECT * FROM events")) is DatabaseDamagedError


def test_connections_to_a_server_that_ended_are_replaced(migrated_postgresql_url: str) -> None:
    """Every pooled connection leads to the server that ended: one failure, not one for each."""
    engine = open_engine(migrated_postgresql_url, connections=4)
    connections: list[Connection] = [engine.connect() for _ in range(4)]
    for connection in connections:
        connection.close()
    end_sessions(migrated_postgresql_url)
    for _ in range(4):
        with engine.connect() as connection:
            assert connection.scalar(text("SELECT 1")) == 1
    engine.dispose()


def test_a_driver_without_an_engine_fails_alike(tmp_path: Path) -> None:
    with pytest.raises(DatabaseUnavailableError), translate_failures():
        sqlite3.connect(tmp_path / "missing" / "kairos.db")
    with pytest.raises(sqlite3.ProgrammingError), translate_failures():
        sqlite3.connect(":memory:").execute("SELECT ?")
