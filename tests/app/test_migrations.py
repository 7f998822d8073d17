"""The schema moves up, down and up again, and is what the code declares."""

from sqlalchemy import inspect
from sqlalchemy.pool import NullPool

from app.db.engine import open_engine
from migrations import run


def tables(database_url: str) -> set[str]:
    with open_engine(database_url, poolclass=NullPool).connect() as connection:
        return set(inspect(connection).get_table_names())


def test_the_schema_moves_up_down_and_up_again(database_url: str) -> None:
    run.upgrade(database_url)
    assert tables(database_url) == {"alembic_version", "events", "items"}
    run.downgrade(database_url, "base")
    assert tables(database_url) == {"alembic_version"}
    run.upgrade(database_url)
    assert tables(database_url) == {"alembic_version", "events", "items"}


def test_the_schema_is_what_the_code_declares(database_url: str) -> None:
    run.upgrade(database_url)
    run.check(database_url)
