"""The file of an SQLite database: whether its path still names the file that is open."""

import os
import sqlite3
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, final
from weakref import WeakSet

from app.errors import DatabaseMovedError, DatabaseUnavailableError

_LEAST_ROOM = 1024 * 1024


class FileIdentity(NamedTuple):
    """Device and inode of a database and of its write-ahead log; None for a missing file."""

    database: tuple[int, int] | None
    log: tuple[int, int] | None


@final
class SqliteFile:
    """The path of a database, whose files may be moved, deleted or replaced at any time.

    SQLite itself does not look: a connection goes on writing to the files that it opened, wherever
    they are and even if they have no name any more.

    Args:
        may_create: whether opening creates a missing file.
    """

    def __init__(self, path: Path, *, may_create: bool = True) -> None:
        self.path = path
        self._log = path.with_name(f"{path.name}-wal")
        self._may_create = may_create
        self._lock = threading.Lock()
        self._connections: WeakSet[_Connection] = WeakSet()
        self._identity: FileIdentity | None = None

    def connect(self, **options: object) -> sqlite3.Connection:
        """Open the database with options of `sqlite3.connect`.

        While connections are open, another one must lead to the same files: SQLite saves what is
        left of a deleted log if the last connection to be closed had opened that log.

        Raises:
            DatabaseMovedError: if the path names other files than those of the open connections.
            DatabaseUnavailableError: if there is no file or an empty one, and none may be created.
        """
        with self._lock:
            if not self._connections:
                self._identity = None
            elif self._identity is not None:
                self.require(self._identity)
            connection = self._open(options)
            connection.on_close = self._discard
            self._connections.add(connection)
            return connection

    def identify_opened(self) -> FileIdentity:
        """Read which files the path names now that a connection has opened both of them."""
        with self._lock:
            self._identity = self._identity or self.identify()
            return self._identity

    def _discard(self, connection: "_Connection") -> None:
        with self._lock:
            self._connections.discard(connection)

    def _open(self, options: dict[str, object]) -> "_Connection":
        try:
            is_there, path = self.path.exists(), self.path.resolve()
            size = path.stat().st_size if is_there else None
        except (OSError, RuntimeError) as error:  # a RuntimeError: links in a circle
            raise _build_access_error(error) from error
        if not self._may_create and size is None:
            raise DatabaseUnavailableError(
                "the file of the database must be where it was, but it is not; move it back or "
                "restore a backup, and it is opened again without a restart"
            )
        if not self._may_create and size == 0:
            # A copy that has just begun: SQLite would begin a database and a log of its own in it,
            # and read from that log, whatever the copy writes afterwards.
            raise DatabaseUnavailableError(
                "the file of the database must hold a database, but it is empty; complete the "
                "copy or restore a backup, and it is opened again without a restart"
            )
        mode = "rwc" if self._may_create else "rw"
        uri = f"{path.as_uri()}?mode={mode}"
        return sqlite3.connect(uri, **{**options, "uri": True, "factory": _Connection})  # type: ignore[call-overload,no-any-return]

    def identify(self) -> FileIdentity:
        """Read which files the path names now."""
        return FileIdentity(_identify(self.path), _identify(self._log))

    def require_room(self) -> None:
        """Check that the disk has room for a transaction; SQLite notices when one fails.

        Raises:
            DatabaseUnavailableError: if it has not.
        """
        try:
            found = os.statvfs(self.path.parent)
        except OSError as error:
            raise _build_access_error(error) from error
        blocks = found.f_bfree if os.geteuid() == 0 else found.f_bavail
        if blocks * found.f_frsize < _LEAST_ROOM:
            raise DatabaseUnavailableError(
                f"the disk of the database must have {_LEAST_ROOM} bytes free, but has "
                f"{blocks * found.f_frsize}; make room, and writes are accepted again"
            )

    def require(self, identity: FileIdentity) -> None:
        """Check that the path names the same files as when a connection was opened.

        Raises:
            DatabaseMovedError: if it does not, so that what was written may be lost.
        """
        if self.identify() != identity:
            raise DatabaseMovedError(
                "the file of the database must stay where it is, but it was moved, deleted or "
                "replaced; try again shortly, and see /health/ready"
            )


class _Connection(sqlite3.Connection):
    """A connection that calls `on_close` after its end."""

    on_close: Callable[["_Connection"], None] | None = None

    def close(self) -> None:
        super().close()
        if self.on_close is not None:
            self.on_close(self)


def _build_access_error(error: OSError | RuntimeError) -> DatabaseUnavailableError:
    reason = error.strerror if isinstance(error, OSError) else "its links form a circle"
    return DatabaseUnavailableError(
        f"the file of the database must be reachable, but is not ({reason}); check its disk and "
        "permissions, and it is opened again without a restart"
    )


def _identify(path: Path) -> tuple[int, int] | None:
    with suppress(OSError):
        status = path.stat()
        return status.st_dev, status.st_ino
    return None
