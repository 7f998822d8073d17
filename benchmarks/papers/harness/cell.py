"""One cell of a benchmark: a row trained with a seed, and its record.

    python -m benchmarks.papers.harness.cell < CELL.json

Prints its progress as JSON lines on standard output, and writes the record at the end.
"""

import hashlib
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import NamedTuple, final

import polars as pl
import torch
from pydantic import Field, JsonValue, PositiveFloat, TypeAdapter

from benchmarks.papers.harness.choice import Chosen, choose_once, find_trials
from benchmarks.papers.harness.question_ranks import OWN, RankedQuestions, encode_ranks
from benchmarks.papers.harness.record import (
    CurvePoint,
    PeerRun,
    ProfilePoint,
    Record,
    TriedSettings,
)
from benchmarks.papers.harness.search import Choice, build_measure, find_best, replace_settings
from benchmarks.papers.harness.stopwatch import Stopwatch
from benchmarks.papers.harness.suite import Settings, digest
from benchmarks.papers.peers.config import PeerConfig
from benchmarks.papers.peers.environments import CODE
from benchmarks.papers.peers.run import FitOptions, run_peer, validate_peer
from model.config import Config, Measurements
from model.errors import KairosError, TrainingError
from model.store.opening import open_predictor
from training.config import RunConfig
from training.data.sources import read_events, read_items
from training.evaluation.counting import tune_counting
from training.evaluation.metrics import Ranks
from training.evaluation.report import (
    MODEL,
    WITHHELD,
    Report,
    rank_references,
    summarise_ranks,
)
from training.fitting.fit import EpochReport
from training.run import begin_run, build_dataset, fit_recommender, rank_on_test, write_outcome

MEASURING_FOLDERS = ("model", "training", "benchmarks/papers/peers")
"""Code that figures depend on."""

MEASURING_FILES = (
    "benchmarks/papers/harness/cell.py",
    "benchmarks/papers/harness/choice.py",
    "benchmarks/papers/harness/question_ranks.py",
    "benchmarks/papers/harness/search.py",
    "benchmarks/speed/peers/peer_runs.py",
)
"""More of it."""


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
    peer: PeerConfig | None = None
    """Settings of a peer, which is run in place of the recipe's encoder."""
    peer_budget_seconds: PositiveFloat = 900.0
    """Processor time of a peer's fit."""
    search: dict[str, tuple[JsonValue, ...]] = Field(default_factory=dict)
    """Values to choose from on the validation questions, by the dotted name of a setting."""
    trials: tuple[Settings, ...] = ()
    """Or tables of settings to choose from."""
    record: Path
    device: str = "cpu"
    threads: int = 1
    epochs: int | None = None
    """Epochs in place of the recipe's, for the command of the record."""
    users: int | None = None
    """Size of a sample of users, for a quick look; all by default."""
    keep: Path | None = None
    """The folder of the bundle; the bundle is deleted by default."""

    @property
    def choice(self) -> Choice:
        """What the settings are chosen from; empty if there is no choice."""
        return self.search or self.trials

    @property
    def name(self) -> str:
        """Suite, row and seed, for messages."""
        return f"{self.suite} {self.row} {self.seed}"

    @property
    def is_done(self) -> bool:
        """Whether its record exists, whole, and has these settings and data."""
        try:
            found = Record.read(self.record)
        except (FileNotFoundError, TrainingError):
            return False
        return found.settings_sha256 == digest(self.settings) and found.data == self.data


class ProgressEvent(Measurements):
    """The progress of a cell; `validation` is set at the end of an epoch, or of a trial."""

    trial: int | None = None
    """The number of a trial of settings that has ended; None for progress within a fit."""
    epoch: int
    of: int
    share: float
    """Of this epoch."""
    loss: float | None = None
    """None for a peer or a trial."""
    validation: dict[str, float] | None = None
    seconds: float = 0.0


ReportProgress = Callable[[ProgressEvent], None]


class Run(NamedTuple):
    """What one run of a cell has measured."""

    config: Settings
    """With all defaults, and the chosen settings."""
    report: Report
    ranks_of: Mapping[str, Ranks]
    questions: RankedQuestions
    curve: tuple[CurvePoint, ...]
    epochs: int
    seconds_per_epoch: float
    best_epoch: int
    parameters: int
    chosen: Chosen
    peer: PeerRun | None = None
    attention_profile: list[ProfilePoint] | None = None


def run_cell(cell: Cell, report_progress: ReportProgress) -> Record:
    """Train, evaluate, and write the record."""
    torch.set_num_threads(cell.threads)
    started_at = datetime.now(UTC).isoformat(timespec="seconds")
    events = read_events(cell.folder / "events.parquet")
    titles = cell.folder / "items.parquet"
    items = read_items(titles) if titles.exists() else None
    if cell.users is not None:
        events = _sample(events, cell.users)
    stopwatch = Stopwatch()
    run = (
        _run_recipe(cell, events, items, report_progress)
        if cell.peer is None
        else _run_peer(cell, cell.peer, events, items, report_progress)
    )
    seconds, cpu_seconds = stopwatch.read()
    record = Record(
        suite=cell.suite,
        row=cell.row,
        seed=cell.seed,
        settings=cell.settings,
        settings_sha256=digest(cell.settings),
        config=run.config,
        data=cell.data,
        device=_read_device_name(cell.device),
        processor=_read_processor_name(),
        threads=cell.threads,
        python=platform.python_version(),
        torch=torch.__version__,
        command=_format_command(cell),
        started_at=started_at,
        code=digest_code(),
        seconds=round(seconds - run.chosen.seconds, 1),
        cpu_seconds=round(cpu_seconds - run.chosen.cpu_seconds, 1),
        choice_cpu_seconds=round(run.chosen.count_cpu_seconds(cell.seed), 1),
        epochs=run.epochs,
        seconds_per_epoch=round(run.seconds_per_epoch, 2),
        best_epoch=run.best_epoch,
        parameters=run.parameters,
        report=run.report,
        questions_sha256=run.questions.sha256,
        ranks={name: encode_ranks(run.ranks_of[name]) for name in OWN if name in run.ranks_of},
        curve=run.curve,
        trials=run.chosen.trials,
        peer=run.peer,
        attention_profile=run.attention_profile,
    )
    run.questions.write(cell.record.parent)
    record.write(cell.record)
    return record


def _run_recipe(
    cell: Cell,
    events: pl.DataFrame,
    items: pl.DataFrame | None,
    report_progress: ReportProgress,
) -> Run:
    """Run a recipe of ours: choose its settings, fit, evaluate and export."""
    reporter = _ProgressReporter(report_progress)

    chosen, config = Chosen(), cell.config
    if cell.choice:
        measure = build_measure(config, events, items)
        chosen = _choose(cell, cell.choice, measure, report_progress)
        config = replace_settings(config, find_best(chosen.trials).settings)
    with tempfile.TemporaryDirectory() as output:
        run = begin_run(config, Path(output), progress=reporter, device=torch.device(cell.device))
        fitted = fit_recommender(run, events, items)
        ranks_of = rank_on_test(run, fitted)
        report = summarise_ranks(ranks_of, fitted.split, fitted.counting)
        outcome = write_outcome(run, fitted, report, fitted.split.test)
        profile = open_predictor(outcome.bundle).bundle.attention_profile
        if cell.keep is not None:
            shutil.copytree(outcome.bundle, cell.keep / outcome.bundle.name, dirs_exist_ok=True)
    epochs = len(outcome.epochs)
    return Run(
        config=config.model_dump(mode="json"),
        report=report,
        ranks_of=ranks_of,
        questions=RankedQuestions.of(
            fitted.split, fitted.whole, config.data.predict, ranks_of, fitted.counting
        ),
        curve=tuple(reporter.curve),
        epochs=epochs,
        seconds_per_epoch=sum(done.seconds for done in outcome.epochs) / max(epochs, 1),
        best_epoch=outcome.best_epoch,
        parameters=outcome.parameters,
        chosen=chosen,
        attention_profile=None
        if profile is None
        else [ProfilePoint(**point) for point in profile.iter_rows(named=True)],
    )


def _run_peer(
    cell: Cell,
    peer: PeerConfig,
    events: pl.DataFrame,
    items: pl.DataFrame | None,
    report_progress: ReportProgress,
) -> Run:
    """Run another library's model on the same split, by its library, and rank its scores."""
    data = cell.config.data
    whole = build_dataset(cell.config, events, items)
    split = cell.config.split.split(whole, data.predict)

    def report(point: tuple[float, int, dict[str, float]]) -> None:
        seconds, epoch, metrics = point
        report_progress(
            ProgressEvent(epoch=epoch, of=peer.epochs, share=1, validation=metrics, seconds=seconds)
        )

    options = FitOptions(
        seed=cell.seed,
        budget_seconds=cell.peer_budget_seconds,
        monitor=cell.config.fit.monitor,
        threads=cell.threads,
        clock="processor",
        report_progress=report,
    )

    def measure(changes: Settings) -> TriedSettings:
        with tempfile.TemporaryDirectory() as work:
            tried = _replace_peer_settings(peer, changes)
            fit = validate_peer(tried, split, data, Path(work), options)
        assert fit.best is not None
        return TriedSettings(
            settings=changes,
            value=fit.best,
            seed=cell.seed,
            epochs=fit.best_epoch,
            curve=tuple(
                CurvePoint(
                    epoch=epoch, seconds=seconds, cpu_seconds=seconds, loss=None, validation=metrics
                )
                for seconds, epoch, metrics in fit.curve
            ),
        )

    # One trial finds the epochs, if there is no choice.
    chosen = _choose(cell, cell.choice or ({},), measure, report_progress)
    best = find_best(chosen.trials)
    config = _replace_peer_settings(peer, best.settings)
    with tempfile.TemporaryDirectory() as work:
        outcome = run_peer(config, whole, split, data, Path(work), options, epochs=best.epochs)
    fit = outcome.fit
    counting = tune_counting(split, exclude_seen=data.exclude_seen)
    ranks_of = {
        MODEL: outcome.given,
        WITHHELD: outcome.withheld or outcome.given,
    } | rank_references(outcome.split, data, counting)
    return Run(
        config=config.model_dump(mode="json"),
        report=summarise_ranks(ranks_of, outcome.split, counting),
        ranks_of=ranks_of,
        questions=RankedQuestions.of(outcome.split, whole, data.predict, ranks_of, counting),
        curve=best.curve if best.seed == cell.seed else (),
        epochs=fit.best_epoch,
        seconds_per_epoch=fit.refit_seconds / fit.best_epoch,
        best_epoch=fit.best_epoch,
        parameters=fit.parameters,
        chosen=chosen,
        peer=PeerRun(
            fit_seconds=round(fit.refit_seconds, 1),
            test_seconds=round(fit.test_seconds, 1),
            peak_mib=round(fit.peak_mib),
            known_items=fit.known_items,
            versions=fit.versions,
        ),
    )


def _replace_peer_settings(peer: PeerConfig, changes: Settings) -> PeerConfig:
    replaced: PeerConfig = TypeAdapter(PeerConfig).validate_python(peer.model_dump() | changes)
    return replaced


@cache
def digest_code() -> str:
    """Compute a digest of the code that a figure depends on: models, training, runs and peers.

    What only renders pages is left out.
    """
    found = [file for folder in MEASURING_FOLDERS for file in (CODE / folder).rglob("*.py")]
    found += [CODE / name for name in MEASURING_FILES]
    found += (CODE / "benchmarks/papers/peers/constraints").glob("*.txt")
    digest_of = hashlib.sha256()
    for file in sorted(found):
        digest_of.update(file.relative_to(CODE).as_posix().encode() + b"\0")
        digest_of.update(file.read_bytes())
    return digest_of.hexdigest()


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


def _choose(
    cell: Cell,
    choice: Choice,
    measure: Callable[[Settings], TriedSettings],
    report_progress: ReportProgress,
) -> Chosen:
    """Choose the settings of a cell's row, and report every trial."""

    def report_trial(number: int, trial: TriedSettings) -> None:
        report_progress(
            ProgressEvent(
                trial=number,
                epoch=number,
                of=number,
                share=1,
                validation={cell.config.fit.monitor: trial.value},
                seconds=trial.cpu_seconds,
            )
        )

    file = find_trials(cell.record.parent, cell.row, cell.settings, cell.data)
    return choose_once(file, choice, measure, report_trial)


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
