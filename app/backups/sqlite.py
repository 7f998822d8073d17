"""Copies of an SQLite database that is in use."""

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from app.backups.record import BackupError
from app.db.engine import parse_url
from app.db.failures import translate_failures

FILE = "kairos.db"


def copy_out(database_url: str, tables: list[str], directory: Path) -> dict[str, int]:
    """Copy a database as of one instant; return the number of rows by table."""
    with (
        translate_failures(),
        closing(
            sqlite3.connect(f"{_get_path(database_url).resolve().as_uri()}?mode=ro", uri=True)
        ) as source,
        closing(sqlite3.connect(directory / FILE)) as copy,
    ):
        # In one step: a copy in several would restart whenever another process commits.
        source.backup(copy)
        # One file, without a write-ahead log.
        copy.execute("PRAGMA journal_mode=DELETE")
        (verdict,) = copy.execute("PRAGMA integrity_check").fetchone()
        if verdict != "ok":
            raise BackupError(
                f"a database must be sound to be copied, but SQLite reports: {verdict[:200]}; "
                "restore an earlier backup"
            )
        return {
            table: copy.execute(f'SELECT count(*) FROM "{table}"').fetchone()[0] for table in tables
        }


def require_empty(database_url: str) -> None:
    """Check that there is no database file yet.

    Raises:
        BackupError: if there is one.
    """
    if _get_path(database_url).exists():
        raise BackupError(
            f"a database is restored into a new file, but {_get_path(database_url)} exists; move "
            "it away, or name another with --database"
        )


def copy_in(database_url: str, directory: Path) -> None:
    """Move a copy into place atomically."""
    path = _get_path(database_url)
    path.parent.mkdir(parents=True, exist_ok=True)
    incoming = path.with_name(f".{path.name}.restoring")
    shutil.copyfile(directory / FILE, incoming)
    with incoming.open("rb") as stream:
        os.fsync(stream.fileno())
    incoming.rename(path)


def _get_path(database_url: str) -> Path:
    return Path(str(parse_url(database_url).database))
