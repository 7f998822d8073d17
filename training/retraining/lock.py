"""The lock that keeps two retraining runs apart; it ends with the process that holds it."""

import fcntl
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from model.errors import KairosError


class AlreadyRunningError(KairosError):
    """Another run of the job holds the lock."""

    code = "already_running"


@contextmanager
def file_lock(file: Path) -> Iterator[None]:
    """Lock a file and write the holder's name into it; released when the process ends.

    Raises:
        AlreadyRunningError: if another process holds it; the message names it, and since when.
        OSError: if the file cannot be written.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a+", encoding="utf-8") as opened:
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise already_running(_read_holder(file), str(file)) from error
        opened.truncate(0)
        json.dump({"holder": this_process(), "since": _format_now()}, opened)
        opened.flush()
        try:
            yield
        finally:
            # The file stays: removing it could remove one that another process has just locked.
            opened.truncate(0)


def already_running(holder: str, lock: str) -> AlreadyRunningError:
    """The error that is raised where another run holds the lock."""
    return AlreadyRunningError(
        f"only one retraining run may be active, but {holder} holds {lock}; wait until it has ended"
    )


def this_process() -> str:
    """The process id and host, as other machines can read them."""
    return f"process {os.getpid()} on {socket.gethostname()}"


def _read_holder(file: Path) -> str:
    try:
        record = json.loads(file.read_text("utf-8"))
        return f"{record['holder']}, since {record['since']},"
    except (ValueError, KeyError, OSError):
        # The holder writes its name shortly after it takes the lock.
        return "another process"


def _format_now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
