"""The checks of every page of the database."""

import random
from pathlib import Path

import psycopg
from sqlalchemy import make_url

from cli.doctor.integrity import check_integrity
from tests.cli.doctor.checks import (
    Environment,
    execute,
    failures,
    fill_database,
    run_doctor,
    warnings,
)

_EVENTS = (
    "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 3000) "
    "INSERT INTO events (event_id, user_id, item_id, action, at, received_at) "
    "SELECT 'e' || n, 'u' || n % 50, 'i' || n % 20, 'view', n, 1 FROM numbers"
)
_PAGE, _POSTGRESQL_PAGE = 4096, 8192


def find_file(database: str) -> Path:
    return Path(database.removeprefix("sqlite:///"))


def overwrite_pages(file: Path, every: int) -> None:
    """Overwrite every n-th page but the first with noise."""
    content, noise = bytearray(file.read_bytes()), random.Random(0)
    for start in range(every * _PAGE, len(content), every * _PAGE):
        content[start : start + _PAGE] = noise.randbytes(_PAGE)
    file.write_bytes(content)


def test_overwritten_pages_are_a_failure(database: str) -> None:
    execute(database, _EVENTS)
    execute(database, "UPDATE training_runs SET started_at = started_at")
    assert failures(run_doctor(0)) == set()
    overwrite_pages(find_file(database), 7)
    found = run_doctor(1)
    assert "database.integrity" in failures(found)
    assert "restore the newest backup" in found["database.integrity"]["remedy"]


def test_an_index_that_misses_rows_is_a_failure(database: str) -> None:
    execute(database, _EVENTS)
    # The table's definition is changed so that SQLite believes the index to be another one's.
    execute(
        database,
        "PRAGMA writable_schema = ON",
        "UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema WHERE name = "
        "'ix_events_at_item_id_action') WHERE name = 'ix_events_item_id_at_action'",
    )
    found = run_doctor(1)
    assert failures(found) >= {"database.integrity"}


def test_a_check_without_time_left_says_so(service_database: str) -> None:
    execute(service_database, _EVENTS)
    (check,) = check_integrity(service_database, -1.0)
    assert check.verdict == "warning"
    assert "kairos doctor --full" in str(check.remedy)


def test_a_sound_database_is_checked_without_a_limit(service_database: str) -> None:
    execute(service_database, _EVENTS)
    assert [check.verdict for check in check_integrity(service_database, None)] == ["ok"]


def test_amcheck_is_used_where_it_is_installed(
    environment: Environment, postgresql_url: str
) -> None:
    fill_database(postgresql_url)
    execute(
        postgresql_url,
        "CREATE FUNCTION bt_index_check(index regclass, heapallindexed boolean) RETURNS void "
        "LANGUAGE plpgsql AS $$ BEGIN IF index::text = 'pk_api_keys' THEN "
        "RAISE EXCEPTION 'item order invariant violated' USING ERRCODE = 'index_corrupted'; "
        "END IF; END $$",
    )
    (check,) = check_integrity(postgresql_url, None)
    assert check.verdict == "failure"
    assert "pk_api_keys: item order invariant violated" in check.finding


def test_a_damaged_page_of_postgresql_is_a_failure(
    postgresql_server: str, postgresql_url: str
) -> None:
    fill_database(postgresql_url)
    execute(postgresql_url, _EVENTS)
    name = str(make_url(postgresql_url).database)
    with psycopg.connect(postgresql_url, autocommit=True) as connection:
        connection.execute("CHECKPOINT")
        row = connection.execute(
            "SELECT current_setting('data_directory') || '/' || pg_relation_filepath('events')"
        ).fetchone()
    assert row is not None
    with Path(row[0]).open("r+b") as table:
        table.seek(_POSTGRESQL_PAGE)
        table.write(random.Random(0).randbytes(_POSTGRESQL_PAGE))
    # The server has the sound page in memory; a copy of the files is read from disk.
    with psycopg.connect(postgresql_server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}_copy TEMPLATE {name} STRATEGY file_copy")
    (check,) = check_integrity(postgresql_url.replace(name, f"{name}_copy"), None)
    assert check.verdict == "failure"
    assert "events: invalid page" in check.finding


def test_warnings_of_a_sound_database_are_none(database: str) -> None:
    execute(database, _EVENTS)
    assert "database.integrity" not in warnings(run_doctor(0))
