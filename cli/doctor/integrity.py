"""Checks of every page of the database: damage on disk shows only where something reads."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from sqlalchemy import Connection, text

from app.db.engine import open_engine, parse_url
from app.db.failures import translate_failures
from app.db.tables import Table
from app.errors import DatabaseDamagedError, DatabaseUnavailableError
from cli.doctor.check import Check, Checks, failure, ok, warning

DEFAULT_SECONDS = 60.0
"""How long the check of the pages may take unless a full one is requested."""

_HEADER = b"SQLite format 3\0"
_NAME = "database.integrity"
_MOST_PROBLEMS = 20
_INSTRUCTIONS_BETWEEN_LOOKS = 10_000
_RESTORE = (
    "stop the service, keep a copy of the database, and restore the newest backup; then check the "
    "disk"
)
_CONSEQUENCE = "reads of the damaged part fail or return wrong events, and backups are refused"


def check_integrity(database_url: str, seconds: float | None) -> Checks:
    """Read every page of the database and check its structure.

    Args:
        seconds: the time limit; None for none.
    """
    deadline = time.monotonic() + (float("inf") if seconds is None else seconds)
    url = parse_url(database_url)
    if url.get_backend_name() == "sqlite":
        yield _check_sqlite(Path(str(url.database)), deadline)
        return
    engine = open_engine(database_url)
    try:
        with engine.connect() as connection:
            yield from _check_postgresql(connection, deadline)
    finally:
        engine.dispose()


def is_sqlite_file(database_url: str) -> bool:
    """Return whether a URL names a file that begins like an SQLite database, damaged or not."""
    url = parse_url(database_url)
    try:
        with Path(str(url.database)).open("rb") as file:
            return url.get_backend_name() == "sqlite" and file.read(len(_HEADER)) == _HEADER
    except OSError:
        return False


def _check_sqlite(file: Path, deadline: float) -> Check:
    """Check the structure of every page, then every index against its table."""
    with closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)) as connection:
        connection.set_progress_handler(
            lambda: time.monotonic() > deadline, _INSTRUCTIONS_BETWEEN_LOOKS
        )
        # The first is several times as fast, and finds most damage.
        for pragma in ("quick_check", "integrity_check"):
            try:
                with translate_failures():
                    rows = connection.execute(f"PRAGMA {pragma}({_MOST_PROBLEMS})").fetchall()
                problems = [str(problem) for (problem,) in rows]
            except DatabaseDamagedError as error:
                problems = [_describe(error)]
            except DatabaseUnavailableError:
                if time.monotonic() <= deadline:
                    raise
                return _report_unfinished(f"SQLite's {pragma}")
            if problems != ["ok"]:
                return _report_damage(problems)
    return ok(_NAME, "every page, and every index against its table")


def _check_postgresql(connection: Connection, deadline: float) -> Checks:
    """Read every row of every table, and check the structures with amcheck if it is installed."""
    yield from _check_checksums(connection)
    has_amcheck = connection.scalar(text("SELECT to_regproc('bt_index_check') IS NOT NULL"))
    connection.rollback()
    try:
        problems = [*_read_tables(connection, deadline)]
        if has_amcheck:
            problems += _check_structures(connection, deadline)
    except TimeoutError:
        yield _report_unfinished("reading every row")
        return
    if problems:
        yield _report_damage(problems)
    elif has_amcheck:
        yield ok(_NAME, "every row is readable, and amcheck finds no problem in the indexes")
    else:
        yield ok(
            _NAME,
            "every row is readable; the indexes were not checked, since the extension amcheck is "
            "not installed (CREATE EXTENSION amcheck)",
        )


def _check_checksums(connection: Connection) -> Checks:
    failures = connection.scalar(
        text("SELECT checksum_failures FROM pg_stat_database WHERE datname = current_database()")
    )
    if failures:
        finding = f"PostgreSQL counted {failures} pages with a wrong checksum: {_CONSEQUENCE}"
        yield failure("database.checksums", finding, _RESTORE)


def _read_tables(connection: Connection, deadline: float) -> Iterator[str]:
    names = [table.name for table in Table.metadata.sorted_tables]
    for name in names:
        exists = connection.scalar(text("SELECT to_regclass(:name) IS NOT NULL"), {"name": name})
        # Indexes hold no rows: without them every page of the table is read.
        yield from _run(
            connection,
            deadline,
            name,
            "SET LOCAL enable_indexscan = off",
            "SET LOCAL enable_indexonlyscan = off",
            "SET LOCAL enable_bitmapscan = off",
            f"SELECT count(*) FROM {name}" if exists else "SELECT 1",
        )


def _check_structures(connection: Connection, deadline: float) -> Iterator[str]:
    indexes = connection.scalars(
        text(
            "SELECT indexrelid::regclass::text FROM pg_index JOIN pg_class ON pg_class.oid = "
            "indexrelid JOIN pg_am ON pg_am.oid = relam WHERE amname = 'btree' AND relnamespace = "
            "current_schema()::regnamespace ORDER BY 1"
        )
    ).all()
    for index in indexes:
        yield from _run(connection, deadline, index, f"SELECT bt_index_check('{index}', true)")


def _run(connection: Connection, deadline: float, name: str, *statements: str) -> Iterator[str]:
    """Run statements in a transaction of their own; yield what the database reports.

    Raises:
        TimeoutError: if they take longer than is left.
    """
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    try:
        if left < float("inf"):
            connection.execute(text(f"SET LOCAL statement_timeout = {max(1, round(left * 1000))}"))
        for statement in statements:
            connection.execute(text(statement))
    except DatabaseDamagedError as error:
        yield f"{name}: {_describe(error)}"
    except DatabaseUnavailableError as error:
        if time.monotonic() <= deadline:
            raise
        raise TimeoutError from error
    finally:
        connection.rollback()


def _describe(error: DatabaseDamagedError) -> str:
    """Return what the driver reported."""
    return "; ".join(getattr(error, "__notes__", ())) or str(error)


def _report_damage(problems: list[str]) -> Check:
    count = f"at least {len(problems)}" if len(problems) >= _MOST_PROBLEMS else f"{len(problems)}"
    shown = " ".join(problems[0].split())[:200]
    return failure(_NAME, f"{count} problems, the first: {shown}; {_CONSEQUENCE}", _RESTORE)


def _report_unfinished(step: str) -> Check:
    return warning(
        _NAME,
        f"no problem found so far, but {step} did not finish in time",
        "run kairos doctor --full when the service has little to do",
    )
