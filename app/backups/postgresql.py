"""Copies of PostgreSQL tables with COPY, without `pg_dump`."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from psycopg import sql

from app.backups.record import BackupError
from app.db.engine import parse_url
from app.db.failures import translate_failures

_MIB = 1024 * 1024


def copy_out(database_url: str, tables: list[str], directory: Path) -> dict[str, int]:
    """Copy tables as of one instant, one file each; return the number of rows by table."""
    rows = {}
    with _connect(database_url) as connection, connection.cursor() as cursor:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.read_only = True
        for table in tables:
            columns = _list_columns(cursor, table)
            statement = sql.SQL("COPY {} ({}) TO STDOUT").format(
                sql.Identifier(table), sql.SQL(", ").join(map(sql.Identifier, columns))
            )
            with (directory / f"{table}.copy").open("wb") as file:
                file.write(("\t".join(columns) + "\n").encode())
                with cursor.copy(statement) as copy:
                    for block in copy:
                        file.write(block)
            rows[table] = cursor.rowcount
    return rows


def require_empty(database_url: str, tables: list[str]) -> None:
    """Check that the tables have no rows.

    Raises:
        BackupError: if one has.
    """
    with _connect(database_url) as connection, connection.cursor() as cursor:
        for table in tables:
            if not _list_columns(cursor, table):
                continue
            cursor.execute(sql.SQL("SELECT EXISTS (SELECT FROM {})").format(sql.Identifier(table)))
            if cursor.fetchone() == (True,):
                raise BackupError(
                    f"a database is restored into an empty one, but the table {table} has "
                    "rows; create an empty database, or name another with --database"
                )


def is_partitioned(database_url: str) -> bool:
    """Return whether the events are in partitions, whose keys a copy would bypass."""
    with _connect(database_url) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT relkind = 'p' FROM pg_class WHERE oid = to_regclass('events')")
        return cursor.fetchone() == (True,)


def copy_in(database_url: str, tables: list[str], directory: Path) -> dict[str, int]:
    """Fill the tables in one transaction; return the number of rows by table."""
    rows = {}
    with _connect(database_url) as connection, connection.cursor() as cursor:
        for table in tables:
            name = sql.Identifier(table)
            # The copied rows hold what triggers added: counts would count twice.
            cursor.execute(sql.SQL("ALTER TABLE {} DISABLE TRIGGER USER").format(name))
            with (directory / f"{table}.copy").open("rb") as file:
                columns = file.readline().decode().rstrip("\n").split("\t")
                statement = sql.SQL("COPY {} ({}) FROM STDIN").format(
                    name, sql.SQL(", ").join(map(sql.Identifier, columns))
                )
                with cursor.copy(statement) as copy:
                    while block := file.read(_MIB):
                        copy.write(block)
            rows[table] = cursor.rowcount
            cursor.execute(sql.SQL("ALTER TABLE {} ENABLE TRIGGER USER").format(name))
            cursor.execute(
                "SELECT column_name, pg_get_serial_sequence(%s, column_name) FROM "
                "information_schema.columns WHERE table_schema = current_schema() "
                "AND table_name = %s AND pg_get_serial_sequence(%s, column_name) IS NOT NULL",
                (table, table, table),
            )
            for column, sequence in cursor.fetchall():
                cursor.execute(
                    sql.SQL("SELECT setval(%s, coalesce(max({}), 0) + 1, false) FROM {}").format(
                        sql.Identifier(str(column)), name
                    ),
                    (sequence,),
                )
    return rows


def _list_columns(cursor: "psycopg.Cursor[tuple[object, ...]]", table: str) -> list[str]:
    cursor.execute(
        "SELECT column_name FROM information_schema.columns "
        "WHERE table_schema = current_schema() AND table_name = %s ORDER BY ordinal_position",
        (table,),
    )
    return [str(name) for (name,) in cursor.fetchall()]


@contextmanager
def _connect(database_url: str) -> "Iterator[psycopg.Connection[tuple[object, ...]]]":
    url = parse_url(database_url)
    # The dialect knows the parameters of several hosts.
    _, parameters = url.get_dialect()().create_connect_args(url)
    with translate_failures(), psycopg.connect(**parameters) as connection:
        yield connection
