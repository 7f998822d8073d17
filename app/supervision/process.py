"""The process of one worker, as its supervisor sees it."""

import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import final

from app.supervision.messages import WorkerReport, WorkerTask

_MODULE = "app.worker"


@final
class WorkerProcess:
    """A running worker.

    It starts from a new interpreter: a copy of this process would share what its threads and
    numeric libraries hold. It ends when this process ends, however that happens, since its
    connection ends then.

    Attributes:
        connection: receives its reports; at its end the worker has ended.
    """

    def __init__(self, task: WorkerTask, sockets: list[socket.socket]) -> None:
        """Start a worker that listens on bound sockets; they are open in it only."""
        self.connection: Connection
        self.connection, other_end = Pipe()
        descriptors = [other_end.fileno(), *(each.fileno() for each in sockets)]
        try:
            self._process = subprocess.Popen(
                # The module is found where this process found it, not in the working directory.
                [sys.executable, "-P", "-m", _MODULE, *map(str, descriptors)],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))},
                stdin=subprocess.DEVNULL,
                pass_fds=descriptors,
            )
        finally:
            other_end.close()
            for each in sockets:
                each.close()
        with suppress(OSError):  # it has ended already; receiving notices that
            self.connection.send(task)

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def receive(self) -> WorkerReport | None:
        """Receive the next report; None if the worker has ended."""
        try:
            report: WorkerReport = self.connection.recv()
        except (EOFError, OSError):
            return None
        return report

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal, unless the worker has ended."""
        self._process.send_signal(number)

    def wait(self) -> int:
        """Wait for the end of the worker; return its exit status, negative for a signal."""
        self.connection.close()
        return self._process.wait()
