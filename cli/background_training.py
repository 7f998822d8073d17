"""A retraining run in a process of its own, beside the service that the user looks at.

The process is nicer than the service and leaves it a core. It ends with the process that started
it, however that ends: then their connection closes, and the run can be resumed.
"""

import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple, final

import torch
import typer

from cli.console import exit_on_error, print_message
from cli.options import open_store
from cli.progress import RetrainingLines
from cli.retrain import run_job
from training.retraining.job import RetrainingJob

_MODULE = "cli.background_training"
_NICENESS = 10
_STOPPING_SECONDS = 10.0
"""The record of an interrupted run is written in a fraction of it."""


class TrainingTask(NamedTuple):
    """A run of the retraining job: its settings, and where its bundles and its checkpoint lie."""

    job: RetrainingJob
    store: Path
    runs: Path

    @property
    def directory(self) -> Path:
        """The directory of the run, from which a killed one resumes."""
        return self.runs / self.job.format_directory_name(None)


@final
class BackgroundTraining:
    """The process of a run."""

    def __init__(self, task: TrainingTask) -> None:
        """Start the process."""
        self._connection, other_end = Pipe()
        try:
            self._process = subprocess.Popen(
                # The module is found where this process found it, not in the working directory.
                [sys.executable, "-P", "-m", _MODULE, str(other_end.fileno())],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))},
                stdin=subprocess.DEVNULL,
                pass_fds=[other_end.fileno()],
                # Ctrl-C of the terminal goes to the service alone, which then stops this process.
                start_new_session=True,
            )
        finally:
            other_end.close()
        with suppress(OSError):  # it has ended already
            self._connection.send(task)

    def stop(self) -> None:
        """Interrupt the run if it has not ended, and wait for the process."""
        if self._process.poll() is None:
            print_message("[bold]training[/] stopped; the next start resumes it")
        self._connection.close()
        try:
            self._process.wait(_STOPPING_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def run_task(task: TrainingTask, threads: int) -> None:
    """Run a task in this process, and print its progress and its result.

    Raises:
        KairosError: if no challenger can be trained, or another run holds a lock.
    """
    torch.set_num_threads(threads)
    store = open_store(task.store)
    lines = RetrainingLines()
    run_job(task.job, store, task.runs, torch.device("cpu"), lines)


def choose_threads() -> int:
    """Choose the threads of a run: all but one of the processors that this process may use."""
    return max(1, len(os.sched_getaffinity(0)) - 1)


def _interrupt_at_the_end_of(connection: Connection) -> None:
    """Interrupt this process when the other end of a connection closes."""
    with suppress(EOFError, OSError):
        connection.recv()
    os.kill(os.getpid(), signal.SIGINT)


def main() -> None:
    """Run the task that the connection of the first argument sends."""
    connection = Connection(int(sys.argv[1]))
    os.nice(_NICENESS)
    # A service that runs in the background of a shell ignores it, and its processes inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        task: TrainingTask = connection.recv()
        threading.Thread(target=_interrupt_at_the_end_of, args=(connection,), daemon=True).start()
        with exit_on_error():
            run_task(task, choose_threads())
    except typer.Exit as ended:
        sys.exit(ended.exit_code)
    except (KeyboardInterrupt, EOFError):
        sys.exit(128 + signal.SIGINT)


if __name__ == "__main__":
    main()
