"""Copying an SQLite database while others write to it."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from app.backups.record import BackupError
from app.db.engine import parse_url

FILE = "kairos.db"


def copy_out(database_url: str, tables: list[str], directory: Path) -> dict[str, int]:
    """Copy a database as of one instant; answers the rows of each table."""
    with (
        closing(
            sqlite3.connect(f"{_path(database_url).resolve().as_uri()}?mode=ro", uri=True)
        ) as source,
        closing(sqlite3.connect(directory / FILE)) as copy,
    ):
        # In one step: what others commit meanwhile is left out, and holds nobody up.
        source.backup(copy)
        # One file, without the log beside it.
        copy.execute("PRAGMA journal_mode=DELETE")
        (verdict,) = copy.execute("PRAGMA integrity_check").fetchone()
        if verdict != "ok":
            raise BackupError(
                f"a database must be sound to be copied, but SQLite says: {verdict[:200]}; restore "
                "an earlier backup"
            )
        return {
            table: copy.execute(f'SELECT count(*) FROM "{table}"').fetchone()[0] for table in tables
        }


def require_room(database_url: str) -> None:
    """Make sure that there is nothing yet.

    Raises:
        BackupError: if there is.
    """
    if _path(database_url).exists():
        raise BackupError(
            f"a database is restored where there is none, but {_path(database_url)} exists; move "
            "it away, or name another with --database"
        )


def copy_in(database_url: str, directory: Path) -> None:
    """Put a copy in its place, whole or not at all."""
    path = _path(database_url)
    path.parent.mkdir(parents=True, exist_ok=True)
    arriving = path.with_name(f".{path.name}.restoring")
    arriving.write_bytes((directory / FILE).read_bytes())
    with arriving.open("rb") as stream:
        os.fsync(stream.fileno())
    arriving.rename(path)


def _path(database_url: str) -> Path:
    return Path(str(parse_url(database_url).database))
