"""The checks of all that the database stores."""

import random
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
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


def add_amcheck(database: str) -> None:
    """Add functions with the signatures of the real extension's; they refuse one index."""
    raise_error = (
        "RETURNS void LANGUAGE plpgsql AS $$ BEGIN IF index::text = 'pk_api_keys' THEN "
        "RAISE EXCEPTION 'item order invariant violated' USING ERRCODE = 'index_corrupted'; "
        "END IF; END $$"
    )
    execute(
        database,
        f"CREATE FUNCTION bt_index_check(index regclass) {raise_error}",
        f"CREATE FUNCTION bt_index_check(index regclass, heapallindexed boolean) {raise_error}",
    )


def test_amcheck_is_used_where_it_is_installed(
    environment: Environment, postgresql_url: str
) -> None:
    fill_database(postgresql_url)
    add_amcheck(postgresql_url)
    (check,) = check_integrity(postgresql_url, None)
    assert check.verdict == "failure"
    assert "pk_api_keys: item order invariant violated" in check.finding


def test_amcheck_is_not_used_where_the_role_may_not(
    environment: Environment, postgresql_url: str
) -> None:
    fill_database(postgresql_url)
    add_amcheck(postgresql_url)
    role = f"reader_{uuid4().hex}"
    execute(
        postgresql_url,
        "REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA public FROM PUBLIC",
        f"CREATE ROLE {role} LOGIN",
        f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {role}",
    )
    url = make_url(postgresql_url).set(username=role).render_as_string(hide_password=False)
    (check,) = check_integrity(url, None)
    execute(postgresql_url, f"DROP OWNED BY {role}", f"DROP ROLE {role}")
    assert check.verdict == "ok"
    assert "this role may not run amcheck" in check.finding


def damage(server: str, url: str, relation: str, pages: slice, offset: int, noise: bytes) -> str:
    """Copy a database whose relation has noise at an offset of pages; return the copy's URL."""
    name = str(make_url(url).database)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CHECKPOINT")
        row = connection.execute(
            "SELECT current_setting('data_directory') || '/' || pg_relation_filepath(oid), "
            f"pg_relation_size(oid) / {_POSTGRESQL_PAGE} FROM ({relation}) AS relation (oid)"
        ).fetchone()
    assert row is not None
    numbers = range(row[1])[pages]
    assert numbers
    with Path(row[0]).open("r+b") as file:
        for number in numbers:
            file.seek(number * _POSTGRESQL_PAGE + offset)
            file.write(noise)
    # The server has the sound pages in memory; a copy of the files is read from disk.
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}_copy TEMPLATE {name} STRATEGY file_copy")
    return url.replace(name, f"{name}_copy")


def test_a_damaged_page_of_postgresql_is_a_failure(
    postgresql_server: str, postgresql_url: str
) -> None:
    fill_database(postgresql_url)
    execute(postgresql_url, _EVENTS)
    noise = random.Random(0).randbytes(_POSTGRESQL_PAGE)
    events = "SELECT CAST('events' AS regclass)"
    copy = damage(postgresql_server, postgresql_url, events, slice(1, 2), 0, noise)
    (check,) = check_integrity(copy, None)
    assert check.verdict == "failure"
    assert "events: invalid page" in check.finding


@pytest.mark.parametrize(
    ("offset", "noise", "finding"),
    [
        (0, random.Random(0).randbytes(_POSTGRESQL_PAGE), "items: invalid page in block"),
        (0, bytes(_POSTGRESQL_PAGE), "items: unexpected chunk number"),
        (5000, b"\xff" * 64, "items: invalid byte sequence"),
    ],
    ids=["pages", "empty pages", "text"],
)
def test_a_damaged_long_value_is_a_failure(
    postgresql_server: str, postgresql_url: str, offset: int, noise: bytes, finding: str
) -> None:
    fill_database(postgresql_url)
    execute(
        postgresql_url,
        # Text that is not compressed: damage to compressed text is found by decompression.
        "ALTER TABLE items ALTER COLUMN properties SET STORAGE EXTERNAL",
        "INSERT INTO items (item_id, categories, properties, updated_at) SELECT 'long' || n, '[]', "
        "to_json(repeat(md5(CAST(n AS text)), 1000)), 1 FROM generate_series(1, 10) AS n",
    )
    assert [check.verdict for check in check_integrity(postgresql_url, None)] == ["ok"]
    long_values = "SELECT reltoastrelid FROM pg_class WHERE relname = 'items'"
    every_seventh = slice(6, None, 7)
    copy = damage(postgresql_server, postgresql_url, long_values, every_seventh, offset, noise)
    # As on a server without checksums, which is PostgreSQL's default before version 18.
    execute(copy, f"ALTER DATABASE {make_url(copy).database} SET ignore_checksum_failure = on")
    (check,) = check_integrity(copy, None)
    assert check.verdict == "failure"
    assert finding in check.finding


def delay_reads(database: str, table: str) -> None:
    """Let a read of a row take a minute, as a read of a table does that is too large."""
    execute(
        database,
        f"CREATE FUNCTION slow({table}) RETURNS text LANGUAGE plpgsql AS "
        "$$ BEGIN PERFORM pg_sleep(60); RETURN ''; END $$",
        f"CREATE CAST ({table} AS text) WITH FUNCTION slow({table})",
    )


def test_a_table_too_large_for_the_time_is_named(
    environment: Environment, postgresql_url: str
) -> None:
    fill_database(postgresql_url)
    execute(postgresql_url, _EVENTS)
    delay_reads(postgresql_url, "events")
    (check,) = check_integrity(postgresql_url, 0.5)
    assert check.verdict == "warning"
    assert "reading every value of the table events (" in check.finding
    assert "kairos doctor --full" in str(check.remedy)


def test_damage_counts_if_the_time_ends_afterwards(
    postgresql_server: str, postgresql_url: str
) -> None:
    fill_database(postgresql_url)
    execute(postgresql_url, _EVENTS)
    noise = random.Random(0).randbytes(_POSTGRESQL_PAGE)
    delay_reads(postgresql_url, "events")
    keys = "SELECT CAST('api_keys' AS regclass)"
    copy = damage(postgresql_server, postgresql_url, keys, slice(0, 1), 0, noise)
    (check,) = check_integrity(copy, 0.5)
    assert check.verdict == "failure"
    assert "keys: invalid page" in check.finding


def test_warnings_of_a_sound_database_are_none(database: str) -> None:
    execute(database, _EVENTS)
    assert "database.integrity" not in warnings(run_doctor(0))
