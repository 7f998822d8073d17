"""One cell of a benchmark: a row trained with a seed, and its record.

    python -m benchmarks.papers.harness.cell < CELL.json

Prints its progress as JSON lines on standard output, and writes the record at the end.
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
from pydantic import Field, JsonValue, ValidationError

from benchmarks.papers.harness.question_ranks import OWN, RankedQuestions, encode_ranks
from benchmarks.papers.harness.question_values import encode_values
from benchmarks.papers.harness.search import TriedSettings, choose_settings
from benchmarks.papers.harness.suite import Settings, digest
from model.config import Config
from model.errors import KairosError
from model.store.opening import open_predictor
from training.config import RunConfig
from training.data.sources import read_events, read_items
from training.evaluation.report import LIVE, MODEL, WITHHELD, Report, summarise_ranks
from training.fitting.fit import EpochReport
from training.run import begin_run, fit_recommender, rank_on_test, write_outcome


class ProfilePoint(Config):
    """One line of a bundle's `attention_profile.parquet`."""

    view: str
    by: str
    name: str
    interval_days: float
    mean: float
    sd: float
    count: int


class CurvePoint(Config):
    """One epoch of a fit: how good the model is, and what it took so far."""

    epoch: int
    seconds: float
    """Wall time since the beginning of the fit, validation included."""
    cpu_seconds: float
    """Processor time of the same."""
    loss: float
    validation: dict[str, float]
    """Empty where it was not evaluated."""


class Record(Config):
    """The results of a cell, and everything needed to reproduce them."""

    suite: str
    row: str
    seed: int
    settings: Settings
    """As in the suite."""
    settings_sha256: str
    config: Settings
    """With all defaults."""
    data: dict[str, str]
    """The sha256 of every file of the data."""
    device: str
    processor: str
    threads: int
    python: str
    torch: str
    command: str
    started_at: str
    seconds: float
    """Wall time of the whole run, evaluation included."""
    cpu_seconds: float
    """Processor time of the same; the wall time on one thread of an idle machine."""
    epochs: int
    seconds_per_epoch: float
    """Without validation."""
    best_epoch: int
    parameters: int
    report: Report
    questions_sha256: str | None = None
    """Of the `RankedQuestions` that the ranks are of."""
    ranks: dict[str, str] = Field(default_factory=dict)
    """The rank of every target of the test questions, by ranker of the model; see
    `benchmarks.papers.harness.question_ranks`."""
    curve: tuple[CurvePoint, ...] = ()
    """The epochs of the fit, without those of a refit."""
    trials: tuple[TriedSettings, ...] = ()
    """The settings tried before, if the row has a search space; the best ones are in `config`."""
    questions: dict[str, str] | None = None
    """The suite's main metric of every test question, by ranker, if the cell keeps it; see
    `benchmarks.papers.harness.question_values`."""
    attention_profile: list[ProfilePoint] | None = None
    """The curves of the bundle's `attention_profile.parquet`, if the suite sets them."""

    @classmethod
    def read(cls, file: Path) -> "Record":
        """Read a record."""
        return cls.model_validate_json(file.read_text("utf-8"))

    def write(self, file: Path) -> None:
        """Write atomically."""
        file.parent.mkdir(parents=True, exist_ok=True)
        unfinished = file.with_name(f".{file.name}.{os.getpid()}")
        unfinished.write_text(json.dumps(self.model_dump(mode="json"), indent=1) + "\n", "utf-8")
        unfinished.replace(file)


class Cell(Config):
    """A row and a seed to run, its data, and the path of its record."""

    benchmark: str = "papers"
    """The command of `kairos bench` that runs it."""
    suite: str
    row: str
    seed: int
    settings: Settings
    config: RunConfig
    folder: Path
    """The folder of the data."""
    data: dict[str, str]
    """The sha256 of every file of the data."""
    search: dict[str, tuple[JsonValue, ...]] = Field(default_factory=dict)
    """Values to choose from on the validation questions, by the dotted name of a setting."""
    record: Path
    device: str = "cpu"
    threads: int = 1
    epochs: int | None = None
    """Epochs in place of the recipe's, for the command of the record."""
    metric: str | None = None
    """The metric whose value on every question is kept; none by default."""
    users: int | None = None
    """Size of a sample of users, for a quick look; all by default."""
    keep: Path | None = None
    """The folder of the bundle; the bundle is deleted by default."""

    @property
    def name(self) -> str:
        """Suite, row and seed, for messages."""
        return f"{self.suite} {self.row} {self.seed}"

    @property
    def is_done(self) -> bool:
        """Whether its record exists and has these settings and data."""
        try:
            found = Record.read(self.record)
        except (FileNotFoundError, ValidationError):
            return False
        return found.settings_sha256 == digest(self.settings) and found.data == self.data


class ProgressEvent(Config):
    """The progress of a cell; `validation` is set at the end of an epoch."""

    epoch: int
    of: int
    share: float
    """Of this epoch."""
    loss: float
    validation: dict[str, float] | None = None
    seconds: float = 0.0


ReportProgress = Callable[[ProgressEvent], None]


def run_cell(cell: Cell, report_progress: ReportProgress) -> Record:
    """Train, evaluate, and write the record."""
    torch.set_num_threads(cell.threads)
    started_at = datetime.now(UTC).isoformat(timespec="seconds")
    events = read_events(cell.folder / "events.parquet")
    titles = cell.folder / "items.parquet"
    items = read_items(titles) if titles.exists() else None
    if cell.users is not None:
        events = _sample(events, cell.users)
    busy = time.process_time()
    began = time.monotonic()
    reporter = _ProgressReporter(report_progress)
    config, trials = choose_settings(cell.config, cell.search, events, items)
    with tempfile.TemporaryDirectory() as output:
        run = begin_run(
            config,
            Path(output),
            progress=reporter,
            device=torch.device(cell.device),
        )
        fitted = fit_recommender(run, events, items)
        ranks_of = rank_on_test(run, fitted)
        report = summarise_ranks(ranks_of, fitted.split, fitted.counting)
        questions = RankedQuestions.of(
            fitted.split, fitted.whole, config.data.predict, ranks_of, fitted.counting
        )
        outcome = write_outcome(run, fitted, report, fitted.split.test)
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
        config=config.model_dump(mode="json"),
        data=cell.data,
        device=_read_device_name(cell.device),
        processor=_read_processor_name(),
        threads=cell.threads,
        python=platform.python_version(),
        torch=torch.__version__,
        command=_format_command(cell),
        started_at=started_at,
        seconds=round(time.monotonic() - began, 1),
        cpu_seconds=round(time.process_time() - busy, 1),
        epochs=epochs,
        seconds_per_epoch=round(sum(done.seconds for done in outcome.epochs) / max(epochs, 1), 2),
        best_epoch=outcome.best_epoch,
        parameters=outcome.parameters,
        report=report,
        questions_sha256=questions.sha256,
        ranks={name: encode_ranks(ranks_of[name]) for name in OWN if name in ranks_of},
        curve=tuple(reporter.curve),
        trials=trials,
        questions=None
        if cell.metric is None
        else {
            name: encode_values(ranks_of[name].per_question(cell.metric))
            for name in (MODEL, LIVE, WITHHELD)
            if name in ranks_of
        },
        attention_profile=None
        if profile is None
        else [ProfilePoint(**point) for point in profile.iter_rows(named=True)],
    )
    if not RankedQuestions.find_file(cell.record.parent, questions.sha256).exists():
        questions.write(cell.record.parent)
    record.write(cell.record)
    return record


@final
class _ProgressReporter:
    """Reports the progress of a run, at most once a second within an epoch.

    Attributes:
        curve: the epochs of the fit so far, without those of a refit.
    """

    def __init__(self, report_progress: ReportProgress) -> None:
        self.curve: list[CurvePoint] = []
        self._report = report_progress
        self._of = 0
        self._epoch = 1
        self._reported_at = 0.0
        self._is_fit = False
        self._began, self._busy = 0.0, 0.0

    def start_fit(self, name: str, epochs: int, done: int = 0) -> None:  # noqa: ARG002
        self._of, self._epoch, self._is_fit = epochs, 1, name == "fit"
        self._began, self._busy = time.monotonic(), time.process_time()

    def finish_step(self, done: int, of: int, loss: float) -> None:
        if time.monotonic() - self._reported_at >= 1:
            self._reported_at = time.monotonic()
            self._report(ProgressEvent(epoch=self._epoch, of=self._of, share=done / of, loss=loss))

    def finish_epoch(self, report: EpochReport) -> None:
        self._epoch = report.epoch + 1
        if self._is_fit:
            self.curve.append(
                CurvePoint(
                    epoch=report.epoch,
                    seconds=round(time.monotonic() - self._began, 1),
                    cpu_seconds=round(time.process_time() - self._busy, 1),
                    loss=report.loss,
                    validation=report.validation,
                )
            )
        self._report(
            ProgressEvent(
                epoch=report.epoch,
                of=self._of,
                share=1.0,
                loss=report.loss,
                validation=report.validation,
                seconds=report.seconds,
            )
        )


def _format_command(cell: Cell) -> str:
    threads = "" if cell.threads == 1 else f" --threads {cell.threads}"
    epochs = "" if cell.epochs is None else f" --epochs {cell.epochs}"
    return (
        f"kairos bench {cell.benchmark} --suite {cell.suite} --rows {cell.row} "
        f"--seeds {cell.seed}{epochs}{threads}"
    )


def _sample(events: pl.DataFrame, users: int) -> pl.DataFrame:
    user_ids = events["user_id"].unique(maintain_order=True)
    chosen = user_ids.gather_every(max(len(user_ids) // users, 1))[:users]
    return events.filter(pl.col("user_id").is_in(chosen.implode()))


def _read_device_name(device: str) -> str:
    return torch.cuda.get_device_name(device) if device.startswith("cuda") else device


def _read_processor_name() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    for line in cpuinfo.read_text("utf-8").splitlines() if cpuinfo.exists() else ():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def main() -> int:
    """Run the cell that standard input describes; return the exit code."""
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
