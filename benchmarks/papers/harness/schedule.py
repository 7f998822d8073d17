"""Runs the cells of a benchmark in parallel, each in its own process."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, suppress
from pathlib import Path
from threading import Lock
from typing import IO, NamedTuple, Protocol

from pydantic import ValidationError

from benchmarks.papers.harness.cell import Cell, ProgressEvent
from benchmarks.papers.harness.question_ranks import RankedQuestions
from benchmarks.papers.harness.record import Record
from benchmarks.papers.peers.environments import CODE
from benchmarks.papers.peers.run import THREAD_VARIABLES, describe_kill
from model.errors import KairosError, TrainingError

CELL_THREAD_VARIABLES = (*THREAD_VARIABLES, "POLARS_MAX_THREADS")
"""Environment variables that bound the threads of a cell."""


class Failure(NamedTuple):
    """A row or cell without a record, and the reason."""

    name: str
    reason: str


class CellProgress(Protocol):
    """Receives the progress of cells; called from several threads."""

    def start(self, cell: Cell) -> None:
        """Report that the process of a cell has started."""

    def update(self, cell: Cell, event: ProgressEvent) -> None:
        """Report the progress of a cell."""

    def finish(self, cell: Cell, record: Record) -> None:
        """Report that a cell's record is written."""

    def fail(self, cell: Cell, reason: str) -> None:
        """Report that a cell ended without a record."""


def run_cells(cells: Sequence[Cell], *, jobs: int, progress: CellProgress) -> list[Failure]:
    """Run the cells in order, `jobs` at a time; a failure does not stop the others.

    On an interrupt the running cells are terminated; finished records stay.

    Raises:
        TrainingError: before any cell is run, if a record or a bundle cannot be written, or
            recorded questions are broken.
    """
    _check_outputs(cells)
    running: set[subprocess.Popen[str]] = set()
    lock = Lock()
    stopped = False

    def run(cell: Cell) -> Failure | None:
        try:
            return run_process(cell)
        except (OSError, KairosError) as error:  # such as a full disk
            progress.fail(cell, str(error))
            return Failure(cell.name, str(error))

    def run_process(cell: Cell) -> Failure | None:
        if cell.is_done:  # by another run since it was planned
            progress.start(cell)
            progress.finish(cell, Record.read(cell.record))
            return None
        with lock:
            if stopped:
                return None
            process = _start(cell)
            running.add(process.process)
        progress.start(cell)
        reason = process.follow(cell, progress)
        with lock:
            running.discard(process.process)
        if stopped:
            return None
        if reason is None:
            progress.finish(cell, Record.read(cell.record))
            return None
        progress.fail(cell, reason)
        return Failure(cell.name, reason)

    with ThreadPoolExecutor(max_workers=jobs) as pool:
        try:
            futures = [pool.submit(run, cell) for cell in cells]
            # An interrupt may not wake a waiting thread (polars handles the signal first), so the
            # wait is short.
            while wait(futures, timeout=1).not_done:
                pass
            return [failure for each in futures if (failure := each.result()) is not None]
        except BaseException:
            with lock:
                stopped = True
                for process in running:
                    process.terminate()
            raise


def _check_outputs(cells: Sequence[Cell]) -> None:
    """Check that records and bundles can be written, without making their folders."""
    options: dict[Path, str] = {}
    for cell in cells:
        if cell.record.is_dir():
            raise TrainingError(
                f"a record is a file, but {cell.record} is a directory; move it away"
            )
        records = cell.record.parent
        options |= {records: "--folder", records / "questions": "--folder"}
        if cell.keep is not None:
            options[cell.keep] = "--keep"
    for file in {file for folder in options for file in folder.glob("questions/*.json")}:
        RankedQuestions.read(file)  # a run of the same questions compares its catalog with theirs
    for folder, option in options.items():
        existing = next(each for each in (folder, *folder.parents) if os.path.lexists(each))
        try:
            with tempfile.TemporaryFile(dir=existing):
                pass
        except OSError as error:
            raise TrainingError(
                f"records and bundles are written at the end of a run, but {folder} cannot be: "
                f"{error}; choose another with {option}, or let this user write it"
            ) from error


class _Child(NamedTuple):
    """A process and its standard error."""

    process: subprocess.Popen[str]
    errors: IO[str]

    def follow(self, cell: Cell, progress: CellProgress) -> str | None:
        """Forward its progress until it ends; return the reason of a failure, or None."""
        with self.process as process:
            assert process.stdout is not None
            for line in process.stdout:
                with suppress(ValidationError):  # libraries may print, too
                    progress.update(cell, ProgressEvent.model_validate_json(line))
        code = self.process.returncode
        with self.errors as errors:
            errors.seek(0)
            output = errors.read()
        if code == 0:
            return None
        lines = [line for line in output.splitlines() if line.strip()]
        # The last line of a killed process is of something else, such as a warning.
        kill = describe_kill(code)
        reason = f"its process {kill}" if kill else lines[-1] if lines else f"ended with {code}"
        if len(lines) < 2 - bool(kill):
            return reason
        log = Path(tempfile.gettempdir()) / f"kairos-{cell.name.replace(' ', '-')}.log"
        log.write_text(output, "utf-8")
        return f"{reason}; its whole output is in {log}"


def _start(cell: Cell) -> _Child:
    with ExitStack() as opened:
        errors = opened.enter_context(tempfile.TemporaryFile("w+", encoding="utf-8"))
        process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.papers.harness.run_cell"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            cwd=CODE,  # cells run this checkout's code
            env=os.environ | dict.fromkeys(CELL_THREAD_VARIABLES, str(cell.threads)),
        )
        opened.pop_all()  # `follow` closes it
    assert process.stdin is not None
    with suppress(BrokenPipeError), process.stdin as its_input:
        its_input.write(cell.model_dump_json())  # one that has ended already says why itself
    return _Child(process, errors)
