"""One cell of a benchmark: a row trained with a seed, in a process of its own, and its record.

    python -m benchmarks.papers.harness.cell < CELL.json

Says on standard output, one JSON line each, how far it is; the record is written when all is done.
"""

import json
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import final

import polars as pl
import torch
from pydantic import ValidationError

from benchmarks.papers.harness.suite import Settings, digest
from model.config import Config
from model.errors import KairosError
from model.store.opening import open_predictor
from training.config import RunConfig
from training.data.sources import read_events, read_items
from training.evaluation.report import Report
from training.fitting.fit import EpochReport
from training.run import train

THREADS = 1


class ProfilePoint(Config):
    """One line of a bundle's `attention_profile.parquet`."""

    view: str
    by: str
    name: str
    interval_days: float
    mean: float
    sd: float
    count: int


class Record(Config):
    """What a cell reached, and all that is needed to reach it again."""

    suite: str
    row: str
    seed: int
    settings: Settings
    """As the suite says them."""
    settings_sha256: str
    config: Settings
    """As they were understood, with all defaults."""
    data: dict[str, str]
    """The sha256 of every file that was read."""
    device: str
    processor: str
    threads: int
    python: str
    torch: str
    command: str
    started_at: str
    seconds: float
    """Wall time of the whole run, its measuring included."""
    cpu_seconds: float
    """Processor time of the same: what a run takes on one thread of an idle machine."""
    epochs: int
    seconds_per_epoch: float
    """Learning alone, without the validation that follows."""
    best_epoch: int
    parameters: int
    report: Report
    attention_profile: list[ProfilePoint] | None = None
    """The curves of the bundle's `attention_profile.parquet`, where the suite asks for them."""

    @classmethod
    def read(cls, file: Path) -> "Record":
        """Read a record."""
        return cls.model_validate_json(file.read_text("utf-8"))

    def write(self, file: Path) -> None:
        """Write whole or not at all."""
        file.parent.mkdir(parents=True, exist_ok=True)
        unfinished = file.with_name(f".{file.name}.{os.getpid()}")
        unfinished.write_text(json.dumps(self.model_dump(mode="json"), indent=1) + "\n", "utf-8")
        unfinished.replace(file)


class Cell(Config):
    """What is to be run, and where its record goes."""

    suite: str
    row: str
    seed: int
    settings: Settings
    config: RunConfig
    folder: Path
    """Of the data."""
    data: dict[str, str]
    """The sha256 of every file of the data."""
    record: Path
    device: str = "cpu"
    users: int | None = None
    """A sample of so many users, for a quick look; all of them by default."""
    keep: Path | None = None
    """Where the bundle goes; it is thrown away by default."""

    @property
    def name(self) -> str:
        """How people call it."""
        return f"{self.suite} {self.row} {self.seed}"

    @property
    def is_done(self) -> bool:
        """Whether its record stands for these settings and this data."""
        try:
            found = Record.read(self.record)
        except (FileNotFoundError, ValidationError):
            return False
        return found.settings_sha256 == digest(self.settings) and found.data == self.data


class ProgressEvent(Config):
    """How far a cell is; `validation` is there when an epoch is done."""

    epoch: int
    of: int
    share: float
    """Of this epoch."""
    loss: float
    validation: dict[str, float] | None = None
    seconds: float = 0.0


Say = Callable[[ProgressEvent], None]


def run_cell(cell: Cell, say: Say) -> Record:
    """Train, measure, and write the record."""
    torch.set_num_threads(THREADS)
    started_at = datetime.now(UTC).isoformat(timespec="seconds")
    events = read_events(cell.folder / "events.parquet")
    titles = cell.folder / "items.parquet"
    items = read_items(titles) if titles.exists() else None
    if cell.users is not None:
        events = _sample(events, cell.users)
    busy = time.process_time()
    with tempfile.TemporaryDirectory() as output:
        outcome = train(
            cell.config,
            events,
            items,
            Path(output),
            progress=_Signs(say),
            device=torch.device(cell.device),
        )
        profile = open_predictor(outcome.bundle).bundle.attention_profile
        if cell.keep is not None:
            shutil.copytree(outcome.bundle, cell.keep / outcome.bundle.name, dirs_exist_ok=True)
    epochs = len(outcome.epochs)
    record = Record(
        suite=cell.suite,
        row=cell.row,
        seed=cell.seed,
        settings=cell.settings,
        settings_sha256=digest(cell.settings),
        config=cell.config.model_dump(mode="json"),
        data=cell.data,
        device=_device_name(cell.device),
        processor=_processor(),
        threads=THREADS,
        python=platform.python_version(),
        torch=torch.__version__,
        command=f"kairos bench papers --suite {cell.suite} --rows {cell.row} --seeds {cell.seed}",
        started_at=started_at,
        seconds=round(outcome.seconds, 1),
        cpu_seconds=round(time.process_time() - busy, 1),
        epochs=epochs,
        seconds_per_epoch=round(sum(done.seconds for done in outcome.epochs) / max(epochs, 1), 2),
        best_epoch=outcome.best_epoch,
        parameters=outcome.parameters,
        report=outcome.report,
        attention_profile=None
        if profile is None
        else [ProfilePoint(**point) for point in profile.iter_rows(named=True)],
    )
    record.write(cell.record)
    return record


@final
class _Signs:
    """Says how a training goes, at most once a second within an epoch."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._of = 0
        self._epoch = 1
        self._said_at = 0.0

    def start_fit(self, name: str, epochs: int) -> None:  # noqa: ARG002
        self._of = epochs

    def finish_step(self, done: int, of: int, loss: float) -> None:
        if time.monotonic() - self._said_at >= 1:
            self._said_at = time.monotonic()
            self._say(ProgressEvent(epoch=self._epoch, of=self._of, share=done / of, loss=loss))

    def finish_epoch(self, report: EpochReport) -> None:
        self._epoch = report.epoch + 1
        self._say(
            ProgressEvent(
                epoch=report.epoch,
                of=self._of,
                share=1.0,
                loss=report.loss,
                validation=report.validation,
                seconds=report.seconds,
            )
        )


def _sample(events: pl.DataFrame, users: int) -> pl.DataFrame:
    everybody = events["user_id"].unique(maintain_order=True)
    chosen = everybody.gather_every(max(len(everybody) // users, 1))[:users]
    return events.filter(pl.col("user_id").is_in(chosen.implode()))


def _device_name(device: str) -> str:
    return torch.cuda.get_device_name(device) if device.startswith("cuda") else device


def _processor() -> str:
    described = Path("/proc/cpuinfo")
    for line in described.read_text("utf-8").splitlines() if described.exists() else ():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def main() -> int:
    """Run the cell that standard input describes; the exit code."""
    cell = Cell.model_validate_json(sys.stdin.read())
    signs = sys.stdout
    sys.stdout = sys.stderr  # nothing but signs goes to the one who waits

    def say(sign: ProgressEvent) -> None:
        # Whoever waits may be gone; then this fails, and the cell ends with it.
        print(sign.model_dump_json(), file=signs, flush=True)

    try:
        run_cell(cell, say)
    except KairosError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
