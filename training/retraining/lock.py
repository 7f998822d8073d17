"""One run at a time: a lock that a dead process cannot keep."""

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
    """Hold a file, which says who does; it is let go when the process ends, however it ends.

    Raises:
        AlreadyRunningError: if somebody else holds it, saying who and since when.
        OSError: if the file cannot be written.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a+", encoding="utf-8") as opened:
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise already_running(_holder(file), str(file)) from error
        opened.truncate(0)
        json.dump({"holder": this_process(), "since": _now()}, opened)
        opened.flush()
        try:
            yield
        finally:
            # The file stays: who removed it might remove one that somebody else has just taken.
            opened.truncate(0)


def already_running(holder: str, lock: str) -> AlreadyRunningError:
    """What a run says that comes second."""
    return AlreadyRunningError(
        f"retraining runs once at a time, but {holder} is at it and holds {lock}; wait for it to "
        "end"
    )


def this_process() -> str:
    """This process, by the name other machines can make sense of."""
    return f"process {os.getpid()} on {socket.gethostname()}"


def _holder(file: Path) -> str:
    try:
        told = json.loads(file.read_text("utf-8"))
        return f"{told['holder']}, since {told['since']},"
    except (ValueError, KeyError, OSError):
        # Between taking the lock and writing the name lies a moment.
        return "another process"


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
