"""A store, its runs, and retraining jobs run in this process, without a database."""

from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from model.store.store import BundleStore
from tests import tiny
from tests.training.ring import COUNTED, PhaseRecorder, ring_world, write_events
from training.config import RunConfig
from training.retraining.gate import Check
from training.retraining.job import NoJournal, RetrainingJob
from training.retraining.report import RunReport
from training.retraining.retrain import retrain

END = tiny.FIRST_AT + 1_000 * tiny.DAY


@dataclass
class Workspace:
    """A folder with a store, the reports of runs, and an event file."""

    root: Path
    recorder: PhaseRecorder = field(default_factory=PhaseRecorder)

    def __post_init__(self) -> None:
        self.store = BundleStore(self.root / "store")
        self.runs = self.root / "runs"

    def job(
        self, events: pl.DataFrame | None = None, config: RunConfig = COUNTED, **more: object
    ) -> RetrainingJob:
        """A job over `events`; without them, over those of the last job."""
        file = self.root / "events.parquet"
        if events is not None:
            write_events(events, file)
        known = {"until": END, "known_by": END}
        return RetrainingJob(config, "ring", str(file), None, **known | more)  # type: ignore[arg-type]

    def retrain(self, job: RetrainingJob, recorder: PhaseRecorder | None = None) -> RunReport:
        self.recorder = recorder or PhaseRecorder()
        return retrain(
            job,
            store=self.store,
            runs=self.runs,
            journal=NoJournal(self.store),
            progress=self.recorder,
        )


def find_check(report: RunReport, name: str) -> Check:
    assert report.decision is not None
    (found,) = [check for check in report.decision.checks if check.name == name]
    return found


def add_later_events(events: pl.DataFrame, days: int = 100) -> pl.DataFrame:
    """The same users, with more events."""
    return pl.concat(
        [events, ring_world(seed=1).with_columns(pl.col("timestamp") + pl.duration(days=days))]
    )
