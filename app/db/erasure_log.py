"""The log of erasures outside the database: a restored backup forgets those made after it."""

import fcntl
import os
from pathlib import Path
from typing import final

from pydantic import BaseModel, ValidationError

from app.db.engine import parse_url
from app.errors import ErasureLogError
from model.bundle.atomic import flush


class _Entry(BaseModel):
    """One line: an erasure. It names nobody; `digest` is as in the table `erased_users`."""

    digest: str
    erased_at: int


@final
class ErasureLog:
    """An append-only file with one JSON object per line; the latest erasure of a user counts.

    Attributes:
        file: where it is; it appears with the first erasure, readable by its owner only.
    """

    def __init__(self, file: Path) -> None:
        self.file = file

    def append(self, erasures: dict[str, int]) -> None:
        """Add erasures, and wait until they survive a power cut.

        Args:
            erasures: the instants up to which users are erased (epoch microseconds), by digest.

        Raises:
            ErasureLogError: if they cannot be written.
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
                _write_all(descriptor, _end_last_line(descriptor) + content)
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
            ErasureLogError: if the file cannot be read.
        """
        erasures: dict[str, int] = {}
        try:
            with self.file.open("rb") as lines:
                for line in lines:
                    try:
                        entry = _Entry.model_validate_json(line)
                    except ValidationError:
                        continue
                    erasures[entry.digest] = max(
                        entry.erased_at, erasures.get(entry.digest, entry.erased_at)
                    )
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise _build_error(self.file, error) from error
        return erasures


def open_erasure_log(database_url: str, file: Path | None = None) -> ErasureLog:
    """Return the log of a database: in `file`, or in a file named after the database."""
    if file is not None:
        return ErasureLog(file)
    url = parse_url(database_url)
    name = f"{url.database}.erasures"
    return ErasureLog(Path(name) if url.get_backend_name() == "sqlite" else Path("var") / name)


def _end_last_line(descriptor: int) -> bytes:
    """Return what is missing after a line that a crash cut short."""
    size = os.fstat(descriptor).st_size
    return b"\n" if size and os.pread(descriptor, 1, size - 1) != b"\n" else b""


def _write_all(descriptor: int, content: bytes) -> None:
    while content:
        content = content[os.write(descriptor, content) :]


def _build_error(file: Path, error: OSError) -> ErasureLogError:
    return ErasureLogError(
        "an erasure must be logged outside the database, where a restored backup does not undo it, "
        f"but {file.name} failed: {error.strerror}; set KAIROS_ERASURE_LOG to a file on a lasting "
        "disk that this process may write"
    )
