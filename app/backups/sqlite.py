"""Copies of an SQLite database that is in use."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from app.backups.record import BackupError
from app.db.engine import parse_url
from app.db.failures import translate_failures
from model.bundle.atomic import flush

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
    path = _get_path(database_url)
    # A log without its database would be taken for that of the restored one.
    for file in (path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-journal")):
        if file.exists():
            raise BackupError(
                f"a database is restored into a new file, but {file} exists; move it away, or name "
                "another with --database"
            )


def stage(database_url: str, directory: Path) -> Path:
    """Copy a copy beside its place, readable by its owner alone; return the path."""
    path = _get_path(database_url)
    path.parent.mkdir(parents=True, exist_ok=True)
    staged = path.with_name(f".{path.name}.restoring")
    remove(staged)
    staged.touch(mode=0o600)
    shutil.copyfile(directory / FILE, staged)
    return staged


def put_in_place(staged: Path, database_url: str) -> None:
    """Move a staged copy into place atomically, with everything that was written to it."""
    with closing(sqlite3.connect(staged)) as connection:
        connection.execute("PRAGMA journal_mode=DELETE")  # moves the write-ahead log into the file
    flush(staged)
    staged.rename(_get_path(database_url))
    flush(staged.parent)


def remove(staged: Path) -> None:
    """Remove a staged copy, if there is one, and what SQLite keeps beside it."""
    for suffix in ("", "-wal", "-shm", "-journal"):
        staged.with_name(staged.name + suffix).unlink(missing_ok=True)


def _get_path(database_url: str) -> Path:
    return Path(str(parse_url(database_url).database))
