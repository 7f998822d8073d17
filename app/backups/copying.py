"""Taking and restoring backups: `kairos backup` and `kairos restore`."""

import shutil
import uuid
from importlib.metadata import version
from pathlib import Path

from app.backups import postgresql, sqlite
from app.backups.record import (
    BackupError,
    BackupRecord,
    list_files,
    read_record,
    write_record,
)
from app.db.engine import parse_url
from app.db.tables import Table
from migrations.run import get_head, read_revision, require_upgraded, upgrade
from model.clock import now
from model.store.store import CURRENT, LAST_KNOWN_GOOD, TRAFFIC, BundleStore

_DATABASE, _STORE = "database", "store"
_POINTERS = (CURRENT, TRAFFIC, LAST_KNOWN_GOOD)


def take_backup(database_url: str, store: Path, directory: Path) -> BackupRecord:
    """Copy a database and a store that are in use into a new directory.

    The backup holds everything acknowledged before it began. The database is copied as of one
    instant, then the store with at least the versions that its pointers named at that instant.

    Raises:
        BackupError: if the directory exists; nothing is written into it.
        SchemaBehindError: if the database was not migrated.
        DatabaseUnavailableError: if the database does not answer.
    """
    if directory.exists():
        raise BackupError(
            f"a backup goes into a new directory, but {directory} exists; name another"
        )
    require_upgraded(database_url)
    taken_at = now()
    directory.parent.mkdir(parents=True, exist_ok=True)
    partial = directory.with_name(f".{directory.name}.{uuid.uuid4().hex[:8]}")
    try:
        (partial / _DATABASE).mkdir(parents=True)
        dialect = _get_dialect(database_url)
        copy_out = sqlite.copy_out if dialect == "sqlite" else postgresql.copy_out
        rows = copy_out(database_url, _list_tables(), partial / _DATABASE)
        current = _copy_store(BundleStore(store), partial / _STORE)
        record = BackupRecord(
            kairos=version("kairos"),
            taken_at=taken_at,
            database=dialect,
            revision=read_revision(database_url) or get_head(),
            rows=rows,
            current=current,
            files=list_files(partial),
        )
        write_record(partial, record)
        partial.rename(directory)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return record


def restore_backup(directory: Path, database_url: str, store: Path) -> BackupRecord:
    """Restore a backup into an empty database and store; verify every file of it first.

    Raises:
        BackupError: if the backup is incomplete or of the other kind of database, or if its target
            is not empty; nothing is changed.
        DatabaseUnavailableError: if the database does not answer.
    """
    record = read_record(directory)
    dialect = _get_dialect(database_url)
    if record.database != dialect:
        raise BackupError(
            f"a backup goes back to the kind of database it was taken from, {record.database}, but "
            f"got one of {dialect}; name another with --database"
        )
    if store.exists() and any(store.iterdir()):
        raise BackupError(
            f"a store is restored into an empty directory, but {store} is not empty; move it away, "
            "or name another with --store"
        )
    if dialect == "sqlite":
        sqlite.require_empty(database_url)
        sqlite.copy_in(database_url, directory / _DATABASE)
    else:
        _restore_postgresql(record, database_url, directory / _DATABASE)
    _restore_store(directory / _STORE, store)
    return record


def _restore_postgresql(record: BackupRecord, database_url: str, source: Path) -> None:
    tables = [table for table in _list_tables() if table in record.rows]
    postgresql.require_empty(database_url, tables)
    at = read_revision(database_url)
    if at not in (None, record.revision):
        raise BackupError(
            f"this backup goes into a database at revision {record.revision} or one never "
            f"migrated, but got one at {at}; make an empty database"
        )
    upgrade(database_url, record.revision)
    if postgresql.copy_in(database_url, tables, source) != record.rows:
        raise BackupError(
            f"a restored table has as many rows as were copied, {record.rows}, but they differ; "
            "make an empty database and restore again"
        )


def _copy_store(store: BundleStore, into: Path) -> str | None:
    """Copy the published versions and the pointers; return the current version."""
    into.mkdir()
    # Read before the versions are listed, so that the versions they name are among them.
    pointers = {
        name: (store.root / name).read_bytes() for name in _POINTERS if (store.root / name).exists()
    }
    current = store.read_current()
    for published in store.list_versions():
        try:
            shutil.copytree(store.root / published, into / published)
        except (FileNotFoundError, shutil.Error):
            shutil.rmtree(into / published, ignore_errors=True)
            if published in store.list_versions() or published == current:
                raise
            # It was pruned during the copy.
    for name, content in pointers.items():
        (into / name).write_bytes(content)
    return current


def _restore_store(source: Path, store: Path) -> None:
    store.parent.mkdir(parents=True, exist_ok=True)
    if store.exists():
        store.rmdir()
    incoming = store.with_name(f".{store.name}.restoring")
    shutil.rmtree(incoming, ignore_errors=True)
    shutil.copytree(source, incoming)
    incoming.rename(store)


def _list_tables() -> list[str]:
    return [table.name for table in Table.metadata.sorted_tables]


def _get_dialect(database_url: str) -> str:
    return parse_url(database_url).get_backend_name()
