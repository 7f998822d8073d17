"""The records of cells: the results of a row with a seed, and what reproduces them."""

import hashlib
import json
import math
import os
import tempfile
from pathlib import Path

from filelock import FileLock
from pydantic import Field, model_validator

from benchmarks.papers.harness.settings import Settings, read_monitor
from model.bundle.atomic import replace_file
from model.config import Measurements
from model.errors import TrainingError
from training.evaluation.report import MODEL, Report
from training.problems import format_problems


class ProfilePoint(Measurements):
    """One line of a bundle's `attention_profile.parquet`."""

    view: str
    by: str
    name: str
    interval_days: float
    mean: float
    sd: float
    count: int


class CurvePoint(Measurements):
    """One epoch of a fit: how good the model is, and what it took so far."""

    epoch: int
    seconds: float
    """Wall time since the beginning of the fit, validation included; of a peer, processor time."""
    cpu_seconds: float
    """Processor time of the same."""
    loss: float | None
    """None for a peer."""
    validation: dict[str, float]
    """Empty where it was not evaluated."""


class TuningTrial(Measurements):
    """A trial of settings: the metric that they reached on the validation questions."""

    settings: Settings
    """By dotted name."""
    value: float = Field(ge=-1, le=1, allow_inf_nan=False)
    """Or -1, if training diverged."""
    seed: int = 0
    epochs: int | None = None
    """Of a peer, the best epoch."""
    cpu_seconds: float = 0.0
    """Processor time of this trial."""
    curve: tuple[CurvePoint, ...] = ()
    """Of a peer, the epochs of the fit."""
    code: str = ""
    """A digest of the code that ran; empty in older records."""
    problem: str = ""
    """Why it has no metric, if training diverged: `value` is then below every metric."""


class PeerRun(Measurements):
    """How a peer was run."""

    fit_seconds: float
    """Processor time of the fit on all events before the test, for the epochs of the best trial."""
    test_seconds: float
    """Processor time of the scores of the test questions."""
    peak_mib: float
    """Largest resident set of its process."""
    known_items: int
    """Items of the catalog that it knows; it ranks the others last."""
    versions: dict[str, str]
    """Of Python and of the packages."""


class Record(Measurements):
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
    code: str = ""
    """A digest of the code that ran; empty in older records."""
    seconds: float
    """Wall time of the whole run, evaluation included, without the choice of its settings."""
    cpu_seconds: float
    """Processor time of the same; the wall time on one thread of an idle machine."""
    choice_cpu_seconds: float = 0.0
    """Processor time of the choice of the settings, in the record of the seed that chose them."""
    epochs: int
    seconds_per_epoch: float
    """Wall time, without validation; of a peer, processor time of its fit on all events."""
    best_epoch: int
    parameters: int
    report: Report
    questions_sha256: str | None = None
    """Of the `RankedQuestions` that the ranks are of."""
    ranks: dict[str, str] = Field(default_factory=dict)
    """The rank of every target of the test questions, by ranker of the model; see
    `benchmarks.papers.harness.question_ranks`."""
    curve: tuple[CurvePoint, ...] = ()
    """The epochs of the fit, without those of a refit; of a peer, those of the best trial, in the
    record of its seed."""
    trials: tuple[TuningTrial, ...] = ()
    """The settings tried before, if the row has a search space; the best ones are in `config`."""
    peer: PeerRun | None = None
    """Of a peer, how it was run."""
    attention_profile: list[ProfilePoint] | None = None
    """The curves of the bundle's `attention_profile.parquet`, if the suite sets them."""

    @model_validator(mode="after")
    def _check_model(self) -> "Record":
        if "questions" not in self.report.rows.get(MODEL, {}):
            raise ValueError(f"report.rows lacks the {MODEL} with its metrics and questions")
        for ranker, figures in self.report.rows.items():
            if lacking := [name for name, value in figures.items() if not math.isfinite(value)]:
                raise ValueError(f"report.rows has no figure of {lacking} for {ranker}")
        if self.questions_sha256 is not None and MODEL not in self.ranks:
            raise ValueError(f"ranks lacks the {MODEL}")
        return self

    @property
    def monitor(self) -> str:
        """The metric of early stopping, on the validation questions."""
        # The config of a peer has no table `fit`; its settings have.
        return read_monitor(self.config if "fit" in self.config else self.settings)

    @property
    def file_name(self) -> str:
        """Its file, in the folder of its suite."""
        return name_record(self.row, self.seed)

    @classmethod
    def read(cls, file: Path) -> "Record":
        """Read a record.

        Raises:
            FileNotFoundError: if there is none.
            TrainingError: if the file is broken.
        """
        try:
            return cls.model_validate_json(file.read_text("utf-8"))
        except FileNotFoundError:
            raise
        except (OSError, ValueError) as error:
            raise TrainingError(
                f"a record is JSON as `kairos bench papers` writes it, but {file} is not: "
                f"{format_problems(error)}; restore it, or delete it and run its row again"
            ) from error

    @classmethod
    def find(cls, file: Path) -> "Record | None":
        """Read a record; None if there is none, or a broken one."""
        try:
            return cls.read(file)
        except (FileNotFoundError, TrainingError):
            return None

    def write(self, file: Path) -> None:
        """Write atomically."""
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, self.model_dump(mode="json"))


def name_record(row: str, seed: int) -> str:
    """Return the name of the file of a record."""
    return f"{row}-{seed}.json"


def write_atomically(file: Path, content: object) -> None:
    """Write JSON into a file of an existing folder; readers see the old content or all of this."""
    write_text_atomically(file, json.dumps(content, indent=1) + "\n")


def write_text_atomically(file: Path, text: str) -> None:
    """Write a text into a file in the same way."""
    replace_file(file, file.with_name(f".{file.name}.{os.getpid()}"), text.encode())


def lock_file(file: Path) -> FileLock:
    """Return the lock of those who write a file, which is in the folder of temporary files."""
    path = hashlib.sha256(str(file.absolute()).encode()).hexdigest()
    return FileLock(Path(tempfile.gettempdir()) / f"kairos-{file.stem}-{path[:12]}.lock")
