"""One of several workers as a process, which `app.supervision` starts.

Its arguments are the descriptors of what it inherits: the connection to the supervisor, and the
bound sockets to listen on.
"""

import os
import shutil
import signal
import socket
import sys
import threading
import time
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from app.auth.local_token import LocalToken
from app.server import WorkerRole, serve
from app.supervision.messages import WorkerFailed, WorkerReport, WorkerStarted, WorkerTask
from model.errors import KairosError, format_error

if TYPE_CHECKING:
    from app.context import AppContext

_LONGEST_STOP_SECONDS = 30.0
"""A worker without a supervisor ends at once after this time; a graceful stop takes less."""


def work(connection: Connection, sockets: list[socket.socket]) -> None:
    """Do the task that a supervisor sends, until it sends a signal or has ended itself."""
    # Before the server handles signals there is nothing to complete.
    for graceful in (signal.SIGTERM, signal.SIGINT):
        signal.signal(graceful, _exit)
    task: WorkerTask = connection.recv()
    threading.Thread(
        target=_follow_supervisor,
        args=(connection, task.metrics_share.directory),
        name="supervisor",
        daemon=True,
    ).start()

    def report(message: WorkerReport) -> None:
        with suppress(OSError):  # the supervisor has ended, which the thread notices
            connection.send(message)

    def handle_start(context: "AppContext", _: int) -> None:
        report(WorkerStarted(context.access_control.accepts_local_token))

    try:
        serve(
            task.settings,
            is_demo=task.is_demo,
            on_start=handle_start,
            role=WorkerRole(
                sockets,
                LocalToken(task.local_token),
                task.metrics_share,
            ),
        )
    except KairosError as error:
        report(WorkerFailed(format_error(error)))
        sys.exit(1)


def _follow_supervisor(connection: Connection, metrics_directory: Path) -> None:
    """Stop this process once its supervisor has ended: nobody else would."""
    with suppress(EOFError, OSError):
        connection.recv()
    shutil.rmtree(metrics_directory, ignore_errors=True)
    # Without the drain period: another process may be about to listen on the address.
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(_LONGEST_STOP_SECONDS)
    os._exit(1)


def _exit(_: int, __: FrameType | None) -> None:
    sys.exit(0)


if __name__ == "__main__":
    connected, *bound = map(int, sys.argv[1:])
    work(Connection(connected), [socket.socket(fileno=each) for each in bound])
