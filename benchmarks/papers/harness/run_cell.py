"""Runs one cell of a benchmark, and writes its record.

    python -m benchmarks.papers.harness.run_cell < CELL.json

Prints its progress as JSON lines on standard output, and writes the record at the end.
"""

import platform
import shutil
import signal
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import torch

from benchmarks.papers.harness.cell import Cell, ProgressEvent, ReportProgress, Run
from benchmarks.papers.harness.peer_run import run_library
from benchmarks.papers.harness.provenance import (
    digest_code,
    digest_data,
    format_data,
    read_device_name,
    read_processor_name,
)
from benchmarks.papers.harness.question_ranks import OWN, check_catalog, encode_ranks
from benchmarks.papers.harness.recipe_run import run_recipe
from benchmarks.papers.harness.record import Record, lock_file
from benchmarks.papers.harness.settings import digest
from benchmarks.papers.harness.stopwatch import Stopwatch
from model.errors import KairosError, TrainingError
from training.data.sources import read_events, read_items


def run_cell(cell: Cell, report_progress: ReportProgress) -> Record:
    """Train, evaluate, write the record, and keep the bundle if the cell names a folder for it.

    A cell that another process runs is waited for, and its record taken.

    Raises:
        TrainingError: if the data are not those of the plan, before or after the run; or if the
            bundle cannot be kept, after the record is written.
    """
    code = digest_code()  # before the run, and the wait: files may be edited meanwhile
    _check_data(cell)
    with lock_file(cell.record):
        return Record.read(cell.record) if cell.is_done else _run_cell(cell, code, report_progress)


def _run_cell(cell: Cell, code: str, report_progress: ReportProgress) -> Record:
    torch.set_num_threads(cell.threads)
    started_at = datetime.now(UTC).isoformat(timespec="seconds")
    events = read_events(cell.folder / "events.parquet")
    titles = cell.folder / "items.parquet"
    items = read_items(titles) if titles.exists() else None
    if cell.users is not None:
        events = _sample(events, cell.users)
    check_catalog(
        cell.record.parent,
        cell.config,
        events,
        items,
        is_refitted=cell.peer is not None or cell.config.fit.refit_before_test,
    )
    with tempfile.TemporaryDirectory() as output:
        stopwatch = Stopwatch()
        run = (
            run_recipe(cell, events, items, Path(output), report_progress)
            if cell.peer is None
            else run_library(cell, cell.peer, events, items, report_progress)
        )
        seconds, cpu_seconds = stopwatch.read()
        _check_data(cell)
        record = _build_record(cell, run, started_at, code, seconds, cpu_seconds)
        run.questions.write(cell.record.parent)
        record.write(cell.record)
        if cell.keep is not None and run.bundle is not None:
            _keep_bundle(cell, run.bundle, cell.keep)
    return record


def _check_data(cell: Cell) -> None:
    """Check that the files of the data are still those of the plan."""
    found = digest_data(cell.folder)
    if found != cell.data:
        raise TrainingError(
            f"a cell is of the data of its plan, {format_data(cell.data)}, but {cell.folder} has "
            f"{format_data(found)} now; leave the files as they are, and run it again"
        )


def _keep_bundle(cell: Cell, bundle: Path, keep: Path) -> None:
    try:
        shutil.copytree(bundle, keep / bundle.name, dirs_exist_ok=True)
    except OSError as error:
        raise TrainingError(
            f"a bundle is copied into the folder of --keep, but {keep} could not be written: "
            f"{error}; the record is written: delete {cell.record} and run its row again for a "
            "bundle"
        ) from error


def _build_record(
    cell: Cell, run: Run, started_at: str, code: str, seconds: float, cpu_seconds: float
) -> Record:
    return Record(
        suite=cell.suite,
        row=cell.row,
        seed=cell.seed,
        settings=cell.settings,
        settings_sha256=digest(cell.settings),
        config=run.config,
        data=cell.data,
        device=read_device_name(cell.device if cell.peer is None else "cpu"),
        processor=read_processor_name(),
        threads=cell.threads,
        python=platform.python_version(),
        torch=torch.__version__,
        command=_format_command(cell),
        started_at=started_at,
        code=run.code or code,
        seconds=round(seconds - run.tuning.seconds, 1),
        cpu_seconds=round(cpu_seconds - run.tuning.cpu_seconds, 1),
        choice_cpu_seconds=round(run.tuning.count_cpu_seconds(cell.seed), 1),
        epochs=run.epochs,
        seconds_per_epoch=round(run.seconds_per_epoch, 2),
        best_epoch=run.best_epoch,
        parameters=run.parameters,
        report=run.report,
        questions_sha256=run.questions.sha256,
        ranks={name: encode_ranks(run.ranks_of[name]) for name in OWN if name in run.ranks_of},
        curve=run.curve,
        trials=run.tuning.trials,
        peer=run.peer,
        attention_profile=run.attention_profile,
    )


def _format_command(cell: Cell) -> str:
    threads = "" if cell.threads == 1 else f" --threads {cell.threads}"
    epochs = "" if cell.epochs is None else f" --epochs {cell.epochs}"
    device = "" if cell.device == "cpu" else f" --device {cell.device}"
    return (
        f"kairos bench {cell.benchmark} --suite {cell.suite} --rows {cell.row} "
        f"--seeds {cell.seed}{epochs}{threads}{device}"
    )


def _sample(events: pl.DataFrame, users: int) -> pl.DataFrame:
    user_ids = events["user_id"].unique(maintain_order=True)
    chosen = user_ids.gather_every(max(len(user_ids) // users, 1))[:users]
    return events.filter(pl.col("user_id").is_in(chosen.implode()))


def main() -> int:
    """Run the cell that standard input describes; return the exit code."""
    # An interrupted run terminates its cells: the exit removes their temporary folders.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    cell = Cell.model_validate_json(sys.stdin.read())
    output = sys.stdout
    sys.stdout = sys.stderr  # standard output carries progress events only

    def report_progress(event: ProgressEvent) -> None:
        # If the parent process is gone, this fails, and the cell ends.
        print(event.model_dump_json(), file=output, flush=True)

    try:
        run_cell(cell, report_progress)
    except KairosError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
