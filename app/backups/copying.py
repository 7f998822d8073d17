"""Taking and restoring backups: `kairos backup` and `kairos restore`."""

import fcntl
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
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
from app.db.database import Database
from app.db.engine import parse_url
from app.db.erasure_log import ErasureLog
from app.db.erasure_replay import Replay, replay_erasures
from app.db.tables import Table
from migrations.run import get_head, list_revisions, read_revision, require_upgraded, upgrade
from model.bundle.atomic import flush
from model.bundle.manifest import verify_digests
from model.clock import now
from model.errors import BundleError
from model.store.store import CURRENT, LAST_KNOWN_GOOD, TRAFFIC, BundleStore
from model.store.traffic import Traffic

_DATABASE, _STORE = "database", "store"
_PARTIAL = ".backup-"
_RESTORING = ".restoring"
_REPLAY_SECONDS = 3600.0
_POINTERS = (CURRENT, TRAFFIC, LAST_KNOWN_GOOD)


def take_backup(database_url: str, store: Path, directory: Path) -> BackupRecord:
    """Copy a database and a store that are in use into a new directory.

    The backup holds everything acknowledged before it began. The database is copied as of one
    instant, then the store with at least the versions that its pointers named at that instant. Each
    version is verified by its digests; a damaged one is left out, and named in the record.

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
    with _make_partial(directory.parent) as partial:
        (partial / _DATABASE).mkdir()
        dialect = _get_dialect(database_url)
        copy_out = sqlite.copy_out if dialect == "sqlite" else postgresql.copy_out
        rows = copy_out(database_url, _list_tables(), partial / _DATABASE)
        current, left_out = _copy_store(BundleStore(store), partial / _STORE)
        record = BackupRecord(
            kairos=version("kairos"),
            taken_at=taken_at,
            database=dialect,
            revision=read_revision(database_url) or get_head(),
            rows=rows,
            current=current,
            files=list_files(partial),
            left_out=left_out,
        )
        write_record(partial, record)
        partial.rename(directory)
        flush(directory.parent)
    return record


def restore_backup(
    directory: Path, database_url: str, store: Path, log: ErasureLog
) -> tuple[BackupRecord, Replay]:
    """Restore a backup into an empty database and store; verify every file of it first.

    Erases again who was erased since the backup was taken. The database appears under its name
    complete, or not at all; then the versions appear in the store one by one, the pointers last.
    What an interrupted restore leaves, the next one removes or refuses.

    Args:
        log: of the erasures of the database that the backup is of.

    Raises:
        BackupError: if the backup is incomplete or of the other kind of database, or if its target
            is not empty; nothing is changed.
        ErasureLogError: if the log cannot be read; the store is then not restored.
        DatabaseUnavailableError: if the database does not answer.
    """
    record = read_record(directory)
    dialect = _get_dialect(database_url)
    if record.database != dialect:
        raise BackupError(
            f"a backup goes back to the kind of database it was taken from, {record.database}, but "
            f"got one of {dialect}; name another with --database"
        )
    if record.revision not in list_revisions():
        raise BackupError(
            "a backup is restored by a version of Kairos that has its revision of the schema, but "
            f"this one has no {record.revision!r}; use the version that took it, "
            f"{record.kairos!r}, or a later one"
        )
    if store.exists() and any(entry.name != _RESTORING for entry in store.iterdir()):
        raise BackupError(
            f"a store is restored into an empty directory, but {store} is not empty; move it away, "
            "or name another with --store"
        )
    if dialect == "sqlite":
        sqlite.require_empty(database_url)
    with _stage_store(directory / _STORE, store) as (staged, left_out):
        if dialect == "sqlite":
            replay = _restore_sqlite(record, database_url, directory / _DATABASE, log)
        else:
            _restore_postgresql(record, database_url, directory / _DATABASE)
            replay = _replay(database_url, log)
        # What the pointers name must be there before them.
        for entry in sorted(staged.iterdir(), key=lambda entry: (entry.is_file(), entry.name)):
            entry.rename(store / entry.name)
        flush(store)
    return record.model_copy(update={"left_out": record.left_out | left_out}), replay


def _restore_sqlite(
    record: BackupRecord, database_url: str, source: Path, log: ErasureLog
) -> Replay:
    staged = sqlite.stage(database_url, source)
    try:
        if (revision := read_revision(f"sqlite:///{staged}")) != record.revision:
            raise BackupError(
                f"the database of a backup is at the recorded revision, {record.revision!r}, but "
                f"this one is at {revision!r}; take another backup"
            )
        replay = _replay(f"sqlite:///{staged}", log)
        sqlite.put_in_place(staged, database_url)
    finally:
        sqlite.remove(staged)
    return replay


def _replay(database_url: str, log: ErasureLog) -> Replay:
    database = Database(database_url, threads=1, queue=0, timeout_seconds=_REPLAY_SECONDS)
    try:
        return replay_erasures(database, log)
    finally:
        database.close()


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
    if postgresql.is_partitioned(database_url):
        raise BackupError(
            "a backup is restored into one table of events, but this database has partitions of "
            "them; make an empty database, and run kairos partition-events afterwards"
        )
    if postgresql.copy_in(database_url, tables, source) != record.rows:
        raise BackupError(
            f"a restored table has as many rows as were copied, {record.rows}, but they differ; "
            "make an empty database and restore again"
        )


def _copy_store(store: BundleStore, into: Path) -> tuple[str | None, dict[str, str]]:
    """Copy the published versions and the pointers.

    Returns:
        The current version, and what is missing or damaged and was left out, with the reasons.
    """
    into.mkdir()
    left_out: dict[str, str] = {}
    # Read before the versions are listed, so that the versions they name are among them.
    pointers, in_use, current = _read_pointers(store, left_out)
    for published in store.list_versions():
        try:
            _copy_bundle(store.root / published, into / published)
            verify_digests(into / published)
        except (OSError, BundleError) as error:
            shutil.rmtree(into / published, ignore_errors=True)
            if store.has_version(published):  # else it was pruned during the copy
                left_out[published] = str(error)
    for used in in_use - {path.name for path in into.iterdir()}:
        left_out.setdefault(used, "it is not in the store, although a pointer names it")
    for name, content in pointers.items():
        (into / name).write_bytes(content)
    return current, left_out


def _read_pointers(
    store: BundleStore, left_out: dict[str, str]
) -> tuple[dict[str, bytes], set[str], str | None]:
    """Read the pointers, the versions they name, and the current one."""
    pointers: dict[str, bytes] = {}
    for name in _POINTERS:
        try:
            pointers[name] = (store.root / name).read_bytes()
        except FileNotFoundError:
            continue
        except OSError as error:
            left_out[name] = str(error)
    current = None if CURRENT in left_out else store.read_current()
    traffic = Traffic()
    try:
        traffic = store.read_traffic()
    except (OSError, BundleError) as error:
        left_out[TRAFFIC] = str(error)
    named = (current, traffic.challenger, traffic.shadow)
    return pointers, {it[:80] for it in named if it is not None}, current


def _copy_bundle(source: Path, into: Path) -> None:
    """Copy the files of a bundle; who may read them is decided by where they go."""
    into.mkdir()
    for file in source.iterdir():
        shutil.copyfile(file, into / file.name)
    # Versions of the same second are in the order of their arrival.
    found = source.stat()
    os.utime(into, ns=(found.st_atime_ns, found.st_mtime_ns))


@contextmanager
def _stage_store(source: Path, store: Path) -> Iterator[tuple[Path, dict[str, str]]]:
    """Copy the store of a backup into a directory within its place, which is removed at the end.

    Yields:
        The copy, and the damaged versions that were left out, with the reasons.
    """
    existed = store.exists()
    store.mkdir(parents=True, exist_ok=True)
    # Not beside it: the store may be a volume of its own, or a link to one.
    staged, left_out = store / _RESTORING, {}
    shutil.rmtree(staged, ignore_errors=True)
    staged.mkdir()
    try:
        for entry in sorted(source.iterdir()):
            if not entry.is_dir():
                shutil.copyfile(entry, staged / entry.name)
                continue
            try:
                verify_digests(entry)
            except BundleError as error:  # backups of earlier releases were not verified
                left_out[entry.name] = str(error)
            else:
                _copy_bundle(entry, staged / entry.name)
        for path in (staged, *staged.rglob("*")):
            flush(path)
        yield staged, left_out
    finally:
        shutil.rmtree(staged, ignore_errors=True)
        if not existed:
            with suppress(OSError):  # not empty: the restore is complete
                store.rmdir()


@contextmanager
def _make_partial(parent: Path) -> Iterator[Path]:
    """Make a directory for an unfinished backup, readable by its owner alone.

    Removes what killed backups left: the kernel releases the lock on it when its writer ends.
    """
    for leftover in parent.glob(f"{_PARTIAL}*"):
        with suppress(OSError), _lock(leftover):
            shutil.rmtree(leftover, ignore_errors=True)
    partial = parent / f"{_PARTIAL}{uuid.uuid4().hex[:8]}"
    partial.mkdir(mode=0o700)
    try:
        with _lock(partial):
            yield partial
    finally:
        shutil.rmtree(partial, ignore_errors=True)


@contextmanager
def _lock(directory: Path) -> Iterator[None]:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def _list_tables() -> list[str]:
    return [table.name for table in Table.metadata.sorted_tables]


def _get_dialect(database_url: str) -> str:
    return parse_url(database_url).get_backend_name()
