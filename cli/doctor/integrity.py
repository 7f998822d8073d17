"""Checks of all that the database stores: damage on disk shows only where something reads.

SQLite checks every page. PostgreSQL has no such statement: every value of every table is read, and
every index is checked by the extension amcheck where it may run.
"""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
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
# Internal errors such as impossible lengths, values that cannot be decoded, and files or states of
# transactions that are missing: elsewhere they may be defects, but not where rows are only read.
_DAMAGE_OF_VALUES = ("XX", "22", "58")
_RESTORE = (
    "stop the service, keep a copy of the database, and restore the newest backup; then check the "
    "disk"
)
_CONSEQUENCE = "reads of the damaged part fail or return wrong events, and backups are refused"


def check_integrity(database_url: str, seconds: float | None) -> Checks:
    """Read all that the database stores and check its structure.

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
    """Read every value of every table, and check the indexes with amcheck where it may run."""
    yield from _check_checksums(connection)
    # Null without the extension. The name alone is ambiguous: amcheck has several of this name.
    may_check_indexes = connection.scalar(
        text(
            "SELECT has_function_privilege("
            "to_regprocedure('bt_index_check(regclass,boolean)'), 'EXECUTE')"
        )
    )
    connection.rollback()
    problems: list[str] = []
    unfinished = None
    try:
        for problem in _find_problems(connection, deadline, check_indexes=bool(may_check_indexes)):
            problems.append(problem)
    except TimeoutError as error:
        unfinished = str(error)
    # What was found counts even if the time ended afterwards.
    if problems:
        yield _report_damage(problems)
    elif unfinished is not None:
        yield _report_unfinished(unfinished)
    elif may_check_indexes:
        yield ok(_NAME, "every value is readable, and amcheck finds no problem in the indexes")
    elif may_check_indexes is None:
        yield ok(
            _NAME,
            "every value is readable; the indexes were not checked, since the extension amcheck "
            "is not installed (CREATE EXTENSION amcheck)",
        )
    else:
        yield ok(
            _NAME,
            "every value is readable; the indexes were not checked, since this role may not run "
            "amcheck (GRANT EXECUTE ON FUNCTION bt_index_check(regclass, boolean))",
        )


def _find_problems(
    connection: Connection, deadline: float, *, check_indexes: bool
) -> Iterator[str]:
    yield from _read_tables(connection, deadline)
    if check_indexes:
        yield from _check_structures(connection, deadline)


def _check_checksums(connection: Connection) -> Checks:
    failures = connection.scalar(
        text("SELECT checksum_failures FROM pg_stat_database WHERE datname = current_database()")
    )
    if failures:
        finding = f"PostgreSQL counted {failures} pages with a wrong checksum: {_CONSEQUENCE}"
        yield failure("database.checksums", finding, _RESTORE)


def _read_tables(connection: Connection, deadline: float) -> Iterator[str]:
    """Read every value of every table; yield what the database reports.

    Raises:
        TimeoutError: if a table takes longer than is left; the message names it.
    """
    # The smallest first: a table that is too large for the time hides no damage of the others.
    with _limit(connection, deadline, "measuring the tables"):
        tables = connection.execute(
            text(
                "SELECT relname, pg_size_pretty(pg_total_relation_size(oid)) FROM pg_class WHERE "
                "oid IN (SELECT to_regclass(name) FROM unnest(CAST(:names AS text[])) AS name) "
                "ORDER BY pg_total_relation_size(oid), relname"
            ),
            {"names": [table.name for table in Table.metadata.sorted_tables]},
        ).all()
    for name, size in tables:
        yield from _run(
            connection,
            deadline,
            name,
            f"reading every value of the table {name} ({size})",
            # Indexes hold no rows: without them every page of the table is read.
            "SET LOCAL enable_indexscan = off",
            "SET LOCAL enable_indexonlyscan = off",
            "SET LOCAL enable_bitmapscan = off",
            # Long values are stored apart, in pages that only a use of the value reads. The
            # conversion also refuses bytes that are no text, as noise within a page is.
            "SELECT sum(length(convert_to(CAST(stored_row AS text), 'UTF8'))) "
            f"FROM {name} AS stored_row",
        )


def _check_structures(connection: Connection, deadline: float) -> Iterator[str]:
    """Check every index against its table; yield what amcheck reports.

    Raises:
        TimeoutError: if an index takes longer than is left; the message names it.
    """
    # An index that CREATE INDEX CONCURRENTLY left unfinished is not used, and amcheck refuses it.
    indexes = connection.scalars(
        text(
            "SELECT indexrelid::regclass::text FROM pg_index JOIN pg_class ON pg_class.oid = "
            "indexrelid JOIN pg_am ON pg_am.oid = relam WHERE amname = 'btree' AND indisvalid AND "
            "relnamespace = current_schema()::regnamespace ORDER BY 1"
        )
    ).all()
    for index in indexes:
        yield from _run(
            connection,
            deadline,
            index,
            f"checking the index {index}",
            f"SELECT bt_index_check('{index}', true)",
        )


def _run(
    connection: Connection, deadline: float, name: str, step: str, *statements: str
) -> Iterator[str]:
    """Run statements in a transaction of their own; yield what the database reports.

    Args:
        name: of the table or index, for problems.
        step: what the statements do, for the message.

    Raises:
        TimeoutError: if they take longer than is left.
    """
    try:
        with _limit(connection, deadline, step):
            for statement in statements:
                connection.execute(text(statement))
    except DatabaseDamagedError as error:
        yield f"{name}: {_describe(error)}"
    except Exception as error:
        if not _is_damage(error):
            raise
        yield f"{name}: {error.__cause__}"


@contextmanager
def _limit(connection: Connection, deadline: float, step: str) -> Iterator[None]:
    """Run a transaction of statements that end at the deadline.

    Raises:
        TimeoutError: if they take longer than is left; its message is the step.
    """
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError(step)
    try:
        if left < float("inf"):
            connection.execute(text(f"SET LOCAL statement_timeout = {max(1, round(left * 1000))}"))
        yield
    except DatabaseUnavailableError as error:
        # Damage that is found at the last moment is damage.
        if isinstance(error, DatabaseDamagedError) or time.monotonic() <= deadline:
            raise
        raise TimeoutError(step) from error
    finally:
        connection.rollback()


def _is_damage(error: Exception) -> bool:
    """Return whether statements that only read can fail like this because of damage alone."""
    return str(getattr(error.__cause__, "sqlstate", None)).startswith(_DAMAGE_OF_VALUES)


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
