"""Runs the cells of a benchmark, some at a time, each in a process of its own with one thread."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import IO, NamedTuple, Protocol

from pydantic import ValidationError

from benchmarks.papers.harness.cell import THREADS, Cell, ProgressEvent, Record

ONE_THREAD = {
    name: str(THREADS)
    for name in (
        "OMP_NUM_THREADS",
        "MKL_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "POLARS_MAX_THREADS",
    )
}


CODE = Path(__file__).parents[2]
"""A cell runs the code that starts it, whatever else is installed."""


class Failure(NamedTuple):
    """A row or cell that has no record, and why."""

    name: str
    why: str


class Watcher(Protocol):
    """Whoever wants to know how the cells come along; called from several threads."""

    def started(self, cell: Cell) -> None:
        """A cell has been given a process."""

    def sign(self, cell: Cell, sign: ProgressEvent) -> None:
        """A cell says how far it is."""

    def done(self, cell: Cell, record: Record) -> None:
        """A cell's record is written."""

    def failed(self, cell: Cell, why: str) -> None:
        """A cell ended without a record."""


def run_cells(cells: Sequence[Cell], *, jobs: int, watcher: Watcher) -> list[Failure]:
    """Run the cells in their order, `jobs` at a time; one that fails does not stop the others.

    When this is interrupted, the running cells end with it; what has a record keeps it.
    """
    running: set[subprocess.Popen[str]] = set()
    lock = Lock()
    stopped = False

    def run(cell: Cell) -> Failure | None:
        with lock:
            if stopped:
                return None
            process = _start(cell)
            running.add(process.process)
        watcher.started(cell)
        why = process.follow(cell, watcher)
        with lock:
            running.discard(process.process)
        if stopped:
            return None
        if why is None:
            watcher.done(cell, Record.read(cell.record))
            return None
        watcher.failed(cell, why)
        return Failure(cell.name, why)

    with ThreadPoolExecutor(max_workers=jobs) as pool:
        try:
            told = [pool.submit(run, cell) for cell in cells]
            # An interrupt may not wake a thread that waits (polars takes the signal first), so
            # none waits for long.
            while wait(told, timeout=1).not_done:
                pass
            return [failure for each in told if (failure := each.result()) is not None]
        except BaseException:
            with lock:
                stopped = True
                for process in running:
                    process.terminate()
            raise


class _Child(NamedTuple):
    """A process, and what it complains about."""

    process: subprocess.Popen[str]
    complaints: IO[str]

    def follow(self, cell: Cell, watcher: Watcher) -> str | None:
        """Pass its signs on until it ends; says why where it failed."""
        with self.process as process:
            assert process.stdout is not None
            for line in process.stdout:
                with suppress(ValidationError):  # a library may have something to say, too
                    watcher.sign(cell, ProgressEvent.model_validate_json(line))
        code = self.process.returncode
        with self.complaints as told:
            told.seek(0)
            lines = [line for line in told.read().splitlines() if line.strip()]
        if code == 0:
            return None
        return lines[-1] if lines else f"ended with {code}"


def _start(cell: Cell) -> _Child:
    complaints = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.papers.harness.cell"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=complaints,
        text=True,
        cwd=CODE,
        env=os.environ | ONE_THREAD,
    )
    assert process.stdin is not None
    process.stdin.write(cell.model_dump_json())
    process.stdin.close()
    return _Child(process, complaints)
