"""The batch retraining job, from the events to the decision whether the new model is served.

If it fails or is killed, the champion stays active: only one step changes what is served. It is
near the end, and atomic.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import final
from uuid import uuid4

import torch

from model.bundle.manifest import Manifest
from model.clock import from_datetime, to_datetime
from model.errors import (
    EmptyHistoryError,
    EventSourceError,
    KairosError,
    OutdatedBundleError,
    UnknownItemError,
    UnorderedHistoryError,
)
from model.inference.predictor import Predictor
from model.store.store import BundleStore
from training.data.columns import UnreadableSourceError
from training.retraining.challenger import evaluate_challenger, identify_erasures
from training.retraining.gate import Decision
from training.retraining.job import Journal, Phase, RetrainingJob, RetrainingProgress
from training.retraining.progress import RunProgress, TrackedProgress
from training.retraining.pruning import prune_runs, prune_store
from training.retraining.report import Result, RunReport


def retrain(
    job: RetrainingJob,
    *,
    store: BundleStore,
    runs: Path,
    journal: Journal,
    progress: RetrainingProgress,
    require_lock: Callable[[], None] = lambda: None,
    device: torch.device | None = None,
) -> RunReport:
    """Train a challenger, and activate it in place of the champion if it passes the gate.

    Run it under a lock. A killed run resumes when the same job is run again.

    Args:
        runs: the directory of the runs; each has a directory in it for its checkpoint, bundle and
            report.
        require_lock: raises if the lock is lost; called before every change of the store.

    Raises:
        KairosError: if there is no challenger; the failure is recorded, too.
    """
    job.require_split_by_time()
    return _Attempt(job, store, runs, journal, progress, require_lock, device).run()


@final
class _Attempt:
    """One attempt at a job, and its report so far."""

    def __init__(
        self,
        job: RetrainingJob,
        store: BundleStore,
        runs: Path,
        journal: Journal,
        progress: RetrainingProgress,
        require_lock: Callable[[], None],
        device: torch.device | None,
    ) -> None:
        self._job = job
        self._store = store
        self._runs = runs
        self._journal = journal
        self._require_lock = require_lock
        self._device = device
        champion, began = store.read_current(), to_datetime(journal.now())
        self._directory = runs / job.format_directory_name(champion)
        self._report = RunReport(
            run_id=f"{began:%Y%m%dT%H%M%SZ}-{uuid4().hex[:8]}",
            directory=self._directory.name,
            recipe=job.recipe,
            settings=job.config.model_dump(mode="json"),
            started_at=began,
            champion=champion,
            warm_start=job.warm_start and champion is not None,
        )
        before = RunReport.read(self._directory)
        is_decided = (
            before is not None and before.result == "running" and before.decision is not None
        )
        self._unfinished = before if is_decided else None
        self._progress = TrackedProgress(progress, job.config.fit, self._record_progress)
        self._phase_began = time.monotonic()
        self._phase: Phase | None = None

    def run(self) -> RunReport:
        """Run every phase, and record the beginning and the end."""
        self._directory.mkdir(parents=True, exist_ok=True)
        self._journal.begin(
            self._report.run_id,
            started_at=from_datetime(self._report.started_at),
            champion=self._report.champion,
            report=self._report.model_dump(mode="json"),
        )
        try:
            if not self._finish_promoted():
                decision, bundle = self._resume_decision() or self._decide()
                self._apply_decision(decision, bundle)
        except BaseException as error:
            # A result that was reached stays, even if recording it failed.
            if self._report.result == "running":
                self._finish("failed", _explain_failure(error))
            raise
        if self._job.keep is not None:
            self._start_phase("prune")
            prune_store(self._store, self._job.keep, self._journal.list_recently_served())
            prune_runs(self._runs, self._job.keep, self._directory)
        return self._report

    def _finish_promoted(self) -> bool:
        """Finish an attempt that was killed between activating its challenger and recording it."""
        before = self._unfinished
        current = self._report.champion
        if before is None or current is None or before.candidate != current:
            return False
        self._copy_findings(before)
        self._update(champion=before.champion)
        self._finish("promoted", "activated by an attempt that was killed before it was recorded")
        return True

    def _resume_decision(self) -> tuple[Decision, Path] | None:
        """Read the decision of an attempt that was killed before applying it, if it still holds."""
        before = self._unfinished
        if before is None or before.champion != self._report.champion:
            return None
        bundle = self._directory / str(before.candidate)
        if before.settings["gate"] != self._report.settings["gate"] or not bundle.is_dir():
            return None
        if before.erasures != identify_erasures(self._job):
            return None
        try:
            Manifest.read(bundle)
        except OutdatedBundleError:
            return None
        self._copy_findings(before)
        assert before.decision is not None
        return before.decision, bundle

    def _copy_findings(self, before: RunReport) -> None:
        self._update(
            data=before.data,
            learned=before.learned,
            comparison=before.comparison,
            decision=before.decision,
            candidate=before.candidate,
            erasures=before.erasures,
            note=before.note,
            warm_start=before.warm_start,
        )

    def _decide(self) -> tuple[Decision, Path | None]:
        """Train and evaluate a challenger, up to the gate's decision."""
        # Before the events are read: who is erased meanwhile invalidates the decision.
        erasures = identify_erasures(self._job)
        challenger = evaluate_challenger(
            self._job,
            self._open_champion(),
            self._directory,
            progress=self._progress,
            start_phase=self._start_phase,
            device=self._device,
            keys=self._store.keys,
        )
        self._update(
            data=challenger.data,
            learned=challenger.learned,
            comparison=challenger.comparison,
            decision=challenger.decision,
            candidate=None if challenger.bundle is None else challenger.bundle.name,
            erasures=erasures,
        )
        # If the process is killed from here on, the next attempt resumes from the decision.
        self._report.write(self._directory)
        return challenger.decision, challenger.bundle

    def _open_champion(self) -> Predictor | None:
        """Open the champion; None before the first activation, and if its format is outdated.

        Without a champion to compare with, the floor and popularity still limit the challenger.
        """
        version = self._report.champion
        if version is None:
            return None
        try:
            return self._store.open(version)
        except OutdatedBundleError as error:
            note = f"the champion was not compared, and its weights were not used: {error}"
            self._update(note=note, warm_start=False)
            return None

    def _apply_decision(self, decision: Decision, bundle: Path | None) -> None:
        """Publish and activate the challenger, or record why not."""
        if not decision.promote or bundle is None:
            self._finish("kept", decision.reason)
            return
        if not self._job.promotes:
            self._finish("passed", f"{decision.reason}; a dry run promotes nothing")
            return
        self._start_phase("publish")
        self._require_lock()
        version = self._store.add_copy(bundle, activate=False)
        self._start_phase("activate")
        self._require_lock()
        current = self._store.read_current()
        if current != self._report.champion:
            self._finish(
                "kept",
                f"the champion was {self._report.champion} when the run began, but is {current} "
                f"now; {version} is published, activate it by its name or run again",
            )
            return
        self._journal.activate(version, f"run {self._report.run_id}: {decision.reason}")
        self._finish("promoted", decision.reason)

    def _start_phase(self, phase: Phase) -> None:
        self._end_phase()
        self._phase = phase
        self._progress.start_phase(phase)

    def _record_progress(self, progress: RunProgress) -> None:
        self._journal.record_progress(self._report.run_id, progress._asdict())

    def _end_phase(self) -> None:
        began, self._phase_began = self._phase_began, time.monotonic()
        if self._phase is not None:
            seconds = round(self._phase_began - began, 3)
            self._update(phases=self._report.phases | {self._phase: seconds})
            self._phase = None

    def _update(self, **fields: object) -> None:
        self._report = self._report.model_copy(update=fields)

    def _finish(self, result: Result, reason: str) -> None:
        self._end_phase()
        finished_at = self._journal.now()
        if self._report.note is not None:
            reason = f"{reason}; {self._report.note}"
        self._update(result=result, reason=reason, finished_at=to_datetime(finished_at))
        self._report.write(self._directory)
        self._journal.finish(
            self._report.run_id,
            finished_at=finished_at,
            result=result,
            candidate=self._report.candidate,
            reason=reason,
            report=self._report.model_dump(mode="json"),
        )


_ABOUT_EVENTS = (EventSourceError, EmptyHistoryError, UnknownItemError, UnorderedHistoryError)


def _explain_failure(error: BaseException) -> str:
    """Describe an error for the run's record, which readers see and no erasure changes.

    It holds nothing of the events: the message of an error quotes them, perhaps with a user's id.
    """
    if isinstance(error, KeyboardInterrupt):
        return "interrupted; the same job resumes it"
    if isinstance(error, UnreadableSourceError):
        return error.record
    if isinstance(error, KairosError) and not isinstance(error, _ABOUT_EVENTS):
        return str(error)
    return type(error).__name__
