"""A PostgreSQL server that answers through TLS only, with a certificate for `localhost`."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from tests.processes import eventually, free_port

_AS_ROOT = os.geteuid() == 0
_USER = "postgres" if _AS_ROOT else None
"""PostgreSQL refuses to run as root."""
PASSWORD = "correct"
_ACCESS = """
local   all all                  trust
hostssl all all 127.0.0.1/32     scram-sha-256
hostssl all all ::1/128          scram-sha-256
"""


def find_postgres() -> Path | None:
    """The directory of the programs of Debian's newest PostgreSQL; None if there is none."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    return found[-1].parent if found else None


@dataclass(frozen=True)
class TlsDatabase:
    """The server and its certificates.

    Attributes:
        authority: the certificate of the authority that signed the server's.
        other_authority: the certificate of another authority.
        socket_url: reaches the server without TLS, as a superuser of this machine.
    """

    port: int
    authority: Path
    other_authority: Path
    socket_url: str

    def build_url(
        self, *, host: str = "localhost", authority: Path | None = None, mode: str = "verify-full"
    ) -> str:
        """Build a URL of the database for Kairos."""
        certificate = authority or self.authority
        return (
            f"postgresql://kairos:{PASSWORD}@{host}:{self.port}/postgres"
            f"?sslmode={mode}&sslrootcert={certificate}"
        )

    def count_connections(self) -> dict[bool, int]:
        """Count the clients' connections over TCP, by whether they are encrypted."""
        with psycopg.connect(self.socket_url) as connection:
            rows = connection.execute(
                "SELECT ssl, count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)"
                " WHERE client_addr IS NOT NULL GROUP BY ssl"
            )
            return dict(rows.fetchall())


@contextmanager
def run_tls_database() -> Iterator[TlsDatabase]:
    """Run the server for the duration of the block."""
    programs = find_postgres()
    assert programs is not None
    # Not in a directory of the tests, which the server's user may not enter.
    directory, port = Path(tempfile.mkdtemp(prefix="kairos-tls-")), free_port()
    try:
        _make_certificates(directory)
        (directory / "password").write_text(PASSWORD)
        if _AS_ROOT:
            for path in (directory, *directory.iterdir()):
                shutil.chown(path, "postgres", "postgres")
        data = directory / "data"
        access = ["--username=kairos", "--auth=trust", f"--pwfile={directory / 'password'}"]
        _run(programs / "initdb", f"--pgdata={data}", "--encoding=UTF8", "--no-sync", *access)
        (data / "pg_hba.conf").write_text(_ACCESS)
        settings = {
            "listen_addresses": "localhost",
            "port": str(port),
            "unix_socket_directories": str(directory),
            "ssl": "on",
            "ssl_cert_file": str(directory / "server.crt"),
            "ssl_key_file": str(directory / "server.key"),
        }
        arguments = [each for name, value in settings.items() for each in ("-c", f"{name}={value}")]
        process = subprocess.Popen(
            [programs / "postgres", "-D", data, *arguments],
            cwd=directory,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            user=_USER,
        )
        socket_url = f"postgresql://kairos@/postgres?host={directory}&port={port}"
        try:
            eventually(lambda: process.poll() is not None or _answers(socket_url))
            assert process.poll() is None, "PostgreSQL did not start"
            yield TlsDatabase(
                port, directory / "authority.crt", directory / "other.crt", socket_url
            )
        finally:
            process.terminate()
            process.wait(30)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _make_certificates(directory: Path) -> None:
    """Make two authorities, and a key whose certificate the first one signs."""
    key = ["-newkey", "rsa:2048", "-nodes", "-days", "2"]
    for name in ("authority", "other"):
        _openssl(
            directory, "req", "-x509", *key, "-subj", f"/CN={name}", "-addext",
            "keyUsage=critical,keyCertSign", "-keyout", f"{name}.key", "-out", f"{name}.crt",
        )  # fmt: skip
    _openssl(
        directory, "req", "-x509", *key, "-subj", "/CN=database", "-addext",
        "subjectAltName=DNS:localhost", "-addext", "basicConstraints=critical,CA:FALSE", "-CA",
        "authority.crt", "-CAkey", "authority.key", "-keyout", "server.key", "-out", "server.crt",
    )  # fmt: skip
    (directory / "server.key").chmod(0o600)
    directory.chmod(0o755)


def _openssl(directory: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=directory, check=True, capture_output=True)


def _run(program: Path, *arguments: str) -> None:
    subprocess.run(
        [program, *arguments], check=True, capture_output=True, user=_USER, cwd=program.parent
    )


def _answers(url: str) -> bool:
    try:
        psycopg.connect(url).close()
    except psycopg.OperationalError:
        return False
    return True
