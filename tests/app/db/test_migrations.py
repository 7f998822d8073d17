"""Migrations: upgrade, downgrade and upgrade again; the result equals the code's tables."""

import subprocess
import sys

import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import inspect, text
from sqlalchemy.pool import NullPool

from app.db.engine import WRITES, open_engine
from app.db.tables import Table
from migrations import run


def tables(database_url: str) -> set[str]:
    with open_engine(database_url, poolclass=NullPool).connect() as connection:
        return set(inspect(connection).get_table_names())


def test_the_schema_upgrades_downgrades_and_upgrades_again(database_url: str) -> None:
    run.upgrade(database_url)
    declared = {"alembic_version", *Table.metadata.tables}
    assert tables(database_url) == declared
    run.downgrade(database_url, "base")
    assert tables(database_url) == {"alembic_version"}
    run.upgrade(database_url)
    assert tables(database_url) == declared


def test_the_schema_equals_the_tables_of_the_code(database_url: str) -> None:
    run.upgrade(database_url)
    run.check(database_url)


def test_revisions_are_those_that_alembic_finds() -> None:
    scripts = ScriptDirectory.from_config(Config(config_args={"script_location": "migrations"}))
    revisions = [script.revision for script in scripts.walk_revisions()]
    assert run.list_revisions() == revisions[::-1]
    assert run.get_head() == scripts.get_current_head()


def test_a_database_without_a_schema_has_no_revision(database_url: str) -> None:
    assert run.read_revision(database_url) is None
    open_engine(database_url, poolclass=NullPool).connect().close()
    assert run.read_revision(database_url) is None


def test_a_schema_of_a_later_version_is_left_unchanged(database_url: str) -> None:
    run.upgrade(database_url)
    engine = open_engine(database_url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(run.NewerSchemaError, match="9999"):
        run.upgrade(database_url)
    engine.dispose()


def test_a_current_schema_needs_no_write_lock(sqlite_url: str) -> None:
    run.upgrade(sqlite_url)
    engine = open_engine(sqlite_url, poolclass=NullPool)
    with engine.connect().execution_options(**WRITES) as connection, connection.begin():
        run.upgrade(sqlite_url)


@pytest.mark.slow
def test_two_processes_that_migrate_at_once_take_turns(database_url: str) -> None:
    command = [sys.executable, "-c", f"from migrations import run; run.upgrade({database_url!r})"]
    processes = [subprocess.Popen(command) for _ in range(3)]
    assert [process.wait(60) for process in processes] == [0, 0, 0]
    run.check(database_url)
