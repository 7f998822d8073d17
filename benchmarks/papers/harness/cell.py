"""One cell of a benchmark: a row and a seed, its progress, and what its run measures."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from pydantic import Field, JsonValue, PositiveFloat

from benchmarks.papers.harness.provenance import digest_code
from benchmarks.papers.harness.question_ranks import RankedQuestions
from benchmarks.papers.harness.record import CurvePoint, PeerRun, ProfilePoint, Record, TuningTrial
from benchmarks.papers.harness.search import SearchSpace
from benchmarks.papers.harness.settings import Settings, digest
from benchmarks.papers.harness.tuning import Tuning, find_trials, read_trials, tune_once
from benchmarks.papers.peers.config import PeerConfig
from model.config import Config, Measurements
from training.config import RunConfig
from training.evaluation.metrics import Ranks
from training.evaluation.report import Report


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
    def search_space(self) -> SearchSpace:
        """What the settings are chosen from; empty if they are given."""
        return self.search or self.trials

    @property
    def name(self) -> str:
        """Suite, row and seed, for messages."""
        return f"{self.suite} {self.row} {self.seed}"

    @property
    def trials_file(self) -> Path:
        """The file of the trials of its row, which is there after the first one."""
        return find_trials(self.record.parent, self.row, self.settings, self.data)

    def count_earlier_trials(self) -> int:
        """Count the trials of its row that need not be made again.

        Raises:
            TrainingError: if their file is broken.
        """
        return len(read_trials(self.trials_file)) if self.trials_file.exists() else 0

    @property
    def is_done(self) -> bool:
        """Whether its record exists, whole, and has these settings and data."""
        found = Record.find(self.record)
        return (
            found is not None
            and found.settings_sha256 == digest(self.settings)
            and found.data == self.data
        )


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
    tuning: Tuning
    peer: PeerRun | None = None
    attention_profile: list[ProfilePoint] | None = None
    bundle: Path | None = None
    """None of a peer."""
    code: str = ""
    """A digest of the code of the last fit, if that had a process of its own."""


def tune_cell(
    cell: Cell,
    space: SearchSpace,
    measure: Callable[[Settings], TuningTrial],
    report_progress: ReportProgress,
) -> Tuning:
    """Choose the settings of a cell's row, once for all seeds, and report every trial.

    Args:
        space: what the settings are chosen from.
        measure: tries some settings.
    """

    def report_trial(number: int, trial: TuningTrial) -> None:
        report_progress(
            ProgressEvent(
                trial=number,
                epoch=number,
                of=number,
                share=1,
                validation={} if trial.problem else {cell.config.fit.monitor: trial.value},
                seconds=trial.cpu_seconds,
            )
        )

    return tune_once(
        cell.trials_file, space, measure, report_trial, seed=cell.seed, code=digest_code()
    )
