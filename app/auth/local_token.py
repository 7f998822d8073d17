"""The local token: what a process draws at start, for people and programs of this machine.

It lies in a file that only the user of the process can read, so who can present it runs programs as
that user. No proxy can present it for somebody else, whatever it adds, changes or leaves out.
"""

import fcntl
import hmac
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple, final

from app.auth.key_cache import digest_key

LOCAL_TOKEN_PREFIX: Final = "kairos_local_"
# What a client on this machine connects to, for each address that includes the loopback interface.
_REACHED_BY_LOOPBACK = {
    "127.0.0.1": "127.0.0.1",
    "localhost": "127.0.0.1",
    "0.0.0.0": "127.0.0.1",
    "::": "127.0.0.1",
    "": "127.0.0.1",
    "::1": "::1",
}


@final
class LocalToken:
    """A random secret of one service, which ends with its process or its processes.

    Attributes:
        secret: as sent in a header, like a key.
    """

    def __init__(self, secret: str | None = None) -> None:
        """Draw a token, or take the secret of one that another process drew."""
        self.secret = secret or LOCAL_TOKEN_PREFIX + secrets.token_urlsafe(32)

    def matches(self, presented: str) -> bool:
        """Return whether a secret is the token, in constant time."""
        return hmac.compare_digest(digest_key(self.secret), digest_key(presented))


class RunningService(NamedTuple):
    """A process of the service that runs on this machine: its base URL, and its local token."""

    url: str
    token: str

    @property
    def dashboard_link(self) -> str:
        """The address of the dashboard with the token in its fragment, which no request carries."""
        return f"{self.url}/dashboard/#token={self.token}"


@final
@dataclass(frozen=True, slots=True)
class TokenFile:
    """The file of a running process's token, locked until the process ends.

    Attributes:
        service: the process.
    """

    path: Path
    service: RunningService = field(repr=False)
    _descriptor: int

    def remove(self) -> None:
        """Remove the file, unless another process has replaced it, and release its lock."""
        own = os.fstat(self._descriptor)
        with suppress(OSError):
            found = self.path.lstat()
            if (found.st_dev, found.st_ino) == (own.st_dev, own.st_ino):
                self.path.unlink()
        os.close(self._descriptor)


def resolve_runtime_directory(configured: Path | None) -> Path:
    """Return the directory of token files: the configured one, or the user's own by default.

    Raises:
        RuntimeError: if none is configured and the user has no home directory.
    """
    if configured is not None:
        return configured
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    return Path(runtime) / "kairos" if runtime else Path.home() / ".local" / "state" / "kairos"


def write_token_file(directory: Path, token: LocalToken, *, host: str, port: int) -> TokenFile:
    """Write the token of a process that listens on an address, for clients on this machine.

    The file appears complete, with mode 0600, in a directory of mode 0700 that no other user
    controls. It replaces that of an earlier process on the same address. Files of processes that
    ended without removing theirs are removed.

    Raises:
        OSError: if the directory is another user's or a link, or cannot be written.
    """
    _require_own_directory(directory)
    for path, _ in _list_files(directory):
        if not _is_locked(path):
            path.unlink(missing_ok=True)
    name = f"{_REACHED_BY_LOOPBACK.get(host, host)}_{port}"
    temporary = directory / f".{name}.{secrets.token_hex(8)}"
    descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        # Against a umask that takes more away, or a file system with permissions of its own.
        os.fchmod(descriptor, 0o600)
        with suppress(OSError):  # some network file systems have no locks
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.write(descriptor, token.secret.encode())
        os.replace(temporary, directory / name)
    except OSError:
        temporary.unlink(missing_ok=True)
        os.close(descriptor)
        raise
    return TokenFile(directory / name, _to_service(name, token.secret), descriptor)


def list_running_services(directory: Path) -> list[RunningService]:
    """List the processes of this user that run on this machine, by address.

    Raises:
        OSError: if the directory exists, but cannot be read.
    """
    if not directory.is_dir():
        return []
    return [
        _to_service(path.name, token) for path, token in _list_files(directory) if _is_locked(path)
    ]


def _to_service(name: str, token: str) -> RunningService:
    host, _, port = name.rpartition("_")
    return RunningService(f"http://{f'[{host}]' if ':' in host else host}:{port}", token)


def _require_own_directory(directory: Path) -> None:
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = directory.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise PermissionError(
            f"local tokens lie in a directory of this user, but {directory} is a link or another "
            "user's; set KAIROS_RUNTIME_DIRECTORY to another place"
        )
    # Others use such a directory, too, so that it cannot be closed to them: `/tmp`, for instance.
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError(
            f"local tokens lie in a directory that only this user writes to, but {directory} has "
            f"the mode {stat.S_IMODE(found.st_mode):04o}; set KAIROS_RUNTIME_DIRECTORY to a "
            "directory of your own"
        )
    if stat.S_IMODE(found.st_mode) & 0o077:
        directory.chmod(0o700)


def _list_files(directory: Path) -> Iterator[tuple[Path, str]]:
    """Yield the token files of a directory with their tokens, by name."""
    for path in sorted(directory.iterdir()):
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            continue
        with os.fdopen(descriptor, "rb") as file:
            is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
            content = file.read(256).decode("latin-1") if is_file else ""
        if content.startswith(LOCAL_TOKEN_PREFIX):
            yield path, content


def _is_locked(path: Path) -> bool:
    """Return whether a running process holds the lock of a file; the kernel releases it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False
