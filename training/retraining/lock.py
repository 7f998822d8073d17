"""Locks that one process holds at a time, and that end with it."""

import fcntl
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from model.errors import KairosError


class AlreadyRunningError(KairosError):
    """Another process does the same already."""

    code = "already_running"


class Exclusion(NamedTuple):
    """Why only one process may hold a lock, for the message of the others.

    Attributes:
        rule: what may happen once at a time.
        remedy: what the caller can do.
    """

    rule: str
    remedy: str


ONE_RUN = Exclusion("only one retraining run may be active", "wait until it has ended")


@contextmanager
def lock_file(file: Path, exclusion: Exclusion = ONE_RUN) -> Iterator[None]:
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
            raise build_already_running_error(_read_holder(file), str(file), exclusion) from error
        opened.truncate(0)
        json.dump({"holder": describe_process(), "since": _format_now()}, opened)
        opened.flush()
        try:
            yield
        finally:
            # The file stays: removing it could remove one that another process has just locked.
            opened.truncate(0)


def build_already_running_error(
    holder: str, lock: str, exclusion: Exclusion = ONE_RUN
) -> AlreadyRunningError:
    """Build the error that is raised where another process holds the lock."""
    return AlreadyRunningError(f"{exclusion.rule}, but {holder} holds {lock}; {exclusion.remedy}")


def describe_process() -> str:
    """Format the process id and host, as other machines can read them."""
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
