"""The log of erasures outside the database: a restored backup forgets those made after it."""

import fcntl
import os
from pathlib import Path
from typing import final
from urllib.parse import quote

from pydantic import BaseModel, Field, ValidationError
from sqlalchemy import URL

from app.db.engine import parse_url
from app.errors import ErasureLogError
from model.bundle.atomic import flush
from model.clock import LAST_INSTANT

_DEFAULT_PORT = "5432"
_DEFAULT_HOST = "local"
_MOST_BYTES_OF_FIRST_LINE = 65_536


class LoggedDatabase(BaseModel):
    """The first line of a log: the PostgreSQL database that it is of.

    Attributes:
        database: its name.
        servers: where it is, as `host:port`; several if it may move from one to another.
    """

    database: str
    servers: list[str]

    def __str__(self) -> str:
        return f"{','.join(self.servers)}/{self.database}"

    def is_same_as(self, other: "LoggedDatabase") -> bool:
        """Return whether both have a server in common: a list of standbys may change."""
        return self.database == other.database and not {*self.servers}.isdisjoint(other.servers)


class _Entry(BaseModel):
    """Each other line: an erasure. It names nobody; `digest` is as in the table `erased_users`."""

    digest: str = Field(pattern="^[0-9a-f]{1,64}$")
    erased_at: int = Field(ge=0, le=LAST_INSTANT)


@final
class ErasureLog:
    """An append-only file with one JSON object per line; the latest erasure of a user counts.

    Attributes:
        file: where it is; it appears with the first erasure, readable by its owner only.
    """

    def __init__(self, file: Path, of: LoggedDatabase | None = None) -> None:
        """Open no file yet.

        Args:
            of: the database that the log must be of; None for any.
        """
        self.file = file
        self._of = of

    def append(self, erasures: dict[str, int]) -> None:
        """Add erasures, and wait until they survive a power cut.

        Args:
            erasures: the instants up to which users are erased (epoch microseconds), by digest.

        Raises:
            ErasureLogError: if they cannot be written, or the log is of another database.
        """
        entries = [_Entry(digest=digest, erased_at=at) for digest, at in erasures.items()]
        content = "".join(f"{entry.model_dump_json()}\n" for entry in entries).encode()
        try:
            is_new = not self.file.exists()
            self.file.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.file, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                # The kernel releases the lock when the file is closed, even by a kill.
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                _write_all(descriptor, self._begin(descriptor) + content)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            if is_new:
                flush(self.file.parent)
        except OSError as error:
            raise _build_error(self.file, error) from error

    def read(self) -> dict[str, int]:
        """Read the instants up to which users are erased (epoch microseconds), by digest.

        A line that a crash cut short is left out; its erasure was never acknowledged.

        Raises:
            ErasureLogError: if the file cannot be read, the log is of another database, or a line
                is damaged: the erasure in it must not be forgotten.
        """
        erasures: dict[str, int] = {}
        try:
            with self.file.open("rb") as lines:
                for number, line in enumerate(lines, start=1):
                    entry = self._parse(number, line)
                    if entry is None:
                        continue
                    erasures[entry.digest] = max(
                        entry.erased_at, erasures.get(entry.digest, entry.erased_at)
                    )
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise _build_error(self.file, error) from error
        return erasures

    def _parse(self, number: int, line: bytes) -> _Entry | None:
        """Parse a line; None for one that names the database, and for one that a crash cut short.

        Raises:
            ErasureLogError: if it is neither, or the database is another one.
        """
        try:
            return _Entry.model_validate_json(line)
        except ValidationError as error:
            content = line.strip()
            is_cut_short = content.startswith(b"{") and not content.endswith(b"}")
            if not content or is_cut_short or self._names_database(content):
                return None
            raise ErasureLogError(
                "a line of a log of erasures holds one JSON object with digest and erased_at, but "
                f"line {number} of {self.file} does not; correct the line, or put a copy of the "
                "file in its place"
            ) from error

    def _begin(self, descriptor: int) -> bytes:
        """Return what comes before new lines: the first line, or the end of one cut short.

        Raises:
            ErasureLogError: if the log is of another database.
        """
        size = os.fstat(descriptor).st_size
        if not size:
            return b"" if self._of is None else f"{self._of.model_dump_json()}\n".encode()
        self._names_database(os.pread(descriptor, _MOST_BYTES_OF_FIRST_LINE, 0).partition(b"\n")[0])
        return b"\n" if os.pread(descriptor, 1, size - 1) != b"\n" else b""

    def _names_database(self, line: bytes) -> bool:
        """Return whether a line names a database; logs of several machines may be joined.

        Raises:
            ErasureLogError: if that is not the one that the log must be of.
        """
        try:
            named = LoggedDatabase.model_validate_json(line)
        except ValidationError:
            return False
        if self._of is not None and not named.is_same_as(self._of):
            raise ErasureLogError(
                f"a log of erasures belongs to one database, but {self.file.name} is of {named}, "
                f"and the database in use is {self._of}; set KAIROS_ERASURE_LOG to another file, "
                "or correct the first line if the database has moved"
            )
        return True


def open_erasure_log(database_url: str, file: Path | None = None) -> ErasureLog:
    """Return the log of a database: in `file`, or in a file named after the database.

    For SQLite that is beside the database's file, and the log names no database: both may be moved.
    For PostgreSQL it is `var/HOST-PORT-NAME.erasures`, with `+` between several servers. Of a
    socket's directory each `/` becomes `_`; HOST is `local` if the URL and `PGHOST` name none.
    """
    url = parse_url(database_url)
    if url.get_backend_name() == "sqlite":
        return ErasureLog(Path(f"{url.database}.erasures") if file is None else file)
    of = _locate(url)
    return ErasureLog(Path("var") / _build_name(of) if file is None else file, of)


def _locate(url: URL) -> LoggedDatabase:
    """Find the servers and the name of a PostgreSQL database as its driver does."""
    _, options = url.get_dialect()().create_connect_args(url)

    def find(option: str, variable: str, default: str = "") -> str:
        return str(options.get(option) or os.environ.get(variable) or default)

    default_port = os.environ.get("PGPORT") or _DEFAULT_PORT
    hosts = find("host", "PGHOST", str(options.get("hostaddr") or _DEFAULT_HOST)).split(",")
    ports = find("port", "PGPORT", _DEFAULT_PORT).split(",")
    if len(ports) == 1:
        ports *= len(hosts)
    servers = {
        f"{_normalize(host)}:{port or default_port}"
        for host, port in zip(hosts, ports, strict=False)
    }
    name = find("dbname", "PGDATABASE") or find("user", "PGUSER", "default")
    return LoggedDatabase(database=name, servers=sorted(servers))


def _normalize(host: str) -> str:
    """Return a host in lower case, as it is one name in either; a socket's directory as it is."""
    return host if host.startswith("/") else host.lower() or _DEFAULT_HOST


def _build_name(of: LoggedDatabase) -> str:
    places = [server.rpartition(":") for server in of.servers]
    servers = [f"{quote(host).replace('/', '_')}-{port}" for host, _, port in places]
    return f"{'+'.join(servers)}-{quote(of.database, safe='')}.erasures"


def _write_all(descriptor: int, content: bytes) -> None:
    while content:
        content = content[os.write(descriptor, content) :]


def _build_error(file: Path, error: OSError) -> ErasureLogError:
    return ErasureLogError(
        "an erasure must be logged outside the database, where a restored backup does not undo it, "
        f"but {file.name} failed: {error.strerror}; set KAIROS_ERASURE_LOG to a file on a lasting "
        "disk that this process may write"
    )
