"""The batch retraining job, from the events to the decision whether the new model is served.

Wherever it fails or is killed, the champion serves on: the one step that changes what is served is
near the end, and atomic.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import final
from uuid import uuid4

import torch

from model.clock import from_datetime, now, to_datetime
from model.errors import KairosError
from model.store.store import BundleStore
from training.retraining.candidate import evaluate_candidate
from training.retraining.gate import Decision
from training.retraining.journal import Journal, Phase, Watcher
from training.retraining.pruning import prune_runs, prune_store
from training.retraining.report import Result, RunReport
from training.retraining.settings import RetrainingJob


def retrain(
    order: RetrainingJob,
    *,
    store: BundleStore,
    runs: Path,
    journal: Journal,
    watcher: Watcher,
    still_alone: Callable[[], None] = lambda: None,
    device: torch.device | None = None,
) -> RunReport:
    """Train a challenger, and serve it in the champion's place if the gate lets it.

    Run it under a lock. Killed, it goes on where it was when it is run with the same order.

    Args:
        runs: where each run has a directory for its checkpoint, its bundle and its report.
        still_alone: raises where the lock was lost; asked before anything is changed.

    Raises:
        KairosError: if there is no challenger; that is then recorded, too.
    """
    order.require_split_by_time()
    return _Attempt(order, store, runs, journal, watcher, still_alone, device).run()


@final
class _Attempt:
    """What `retrain` was given, and what is known so far."""

    def __init__(
        self,
        order: RetrainingJob,
        store: BundleStore,
        runs: Path,
        journal: Journal,
        watcher: Watcher,
        still_alone: Callable[[], None],
        device: torch.device | None,
    ) -> None:
        self._order = order
        self._store = store
        self._runs = runs
        self._journal = journal
        self._watcher = watcher
        self._still_alone = still_alone
        self._device = device
        champion, began = store.current(), to_datetime(now())
        self._directory = runs / order.directory_name(champion)
        self._report = RunReport(
            run_id=f"{began:%Y%m%dT%H%M%SZ}-{uuid4().hex[:8]}",
            directory=self._directory.name,
            recipe=order.recipe,
            settings=order.config.model_dump(mode="json"),
            started_at=began,
            champion=champion,
            warm_start=order.warm_start and champion is not None,
        )
        before = RunReport.read(self._directory)
        decided = before is not None and before.result == "running" and before.decision is not None
        self._unfinished = before if decided else None
        self._entered = time.monotonic()
        self._phase: Phase | None = None

    def run(self) -> RunReport:
        """Every phase, and the records at both ends."""
        self._directory.mkdir(parents=True, exist_ok=True)
        self._journal.begin(
            self._report.run_id,
            started_at=from_datetime(self._report.started_at),
            champion=self._report.champion,
            report=self._report.model_dump(mode="json"),
        )
        try:
            if not self._was_promoted():
                decision, bundle = self._decided_before() or self._decide()
                self._act_on(decision, bundle)
        except BaseException as error:
            # What has come to its result stays so, even where that could not be recorded.
            if self._report.result == "running":
                told = str(error) if isinstance(error, KairosError) else type(error).__name__
                self._finish("failed", told)
            raise
        if self._order.keep is not None:
            self._enter("prune")
            prune_store(self._store, self._order.keep, self._journal.served_lately())
            prune_runs(self._runs, self._order.keep, self._directory)
        return self._report

    def _was_promoted(self) -> bool:
        """Whether an attempt was killed between activating its challenger and saying so."""
        before = self._unfinished
        served = self._report.champion
        if before is None or served is None or before.candidate != served:
            return False
        self._take_over(before)
        self._note(champion=before.champion)
        self._finish("promoted", "activated by an attempt that was killed before it could say so")
        return True

    def _decided_before(self) -> tuple[Decision, Path] | None:
        """What an attempt decided that was killed before it could act on it."""
        before = self._unfinished
        if before is None or before.champion != self._report.champion:
            return None
        bundle = self._directory / str(before.candidate)
        if before.settings["gate"] != self._report.settings["gate"] or not bundle.is_dir():
            return None
        self._take_over(before)
        assert before.decision is not None
        return before.decision, bundle

    def _take_over(self, before: RunReport) -> None:
        self._note(
            data=before.data,
            learned=before.learned,
            comparison=before.comparison,
            decision=before.decision,
            candidate=before.candidate,
        )

    def _decide(self) -> tuple[Decision, Path | None]:
        """Read, fit, compare, write, and ask the gate."""
        named = self._report.champion
        champion = None if named is None else self._store.open(named)
        found = evaluate_candidate(
            self._order,
            champion,
            self._directory,
            watcher=self._watcher,
            enter=self._enter,
            device=self._device,
        )
        self._note(
            data=found.data,
            learned=found.learned,
            comparison=found.comparison,
            decision=found.decision,
            candidate=None if found.bundle is None else found.bundle.name,
        )
        # Should the process be killed from here on, the next one need not decide again.
        self._report.write(self._directory)
        return found.decision, found.bundle

    def _act_on(self, decision: Decision, bundle: Path | None) -> None:
        """Put the challenger into the champion's place, or say why not."""
        if not decision.promote or bundle is None:
            self._finish("kept", decision.reason)
            return
        if not self._order.promotes:
            self._finish("passed", f"{decision.reason}; it was not to be promoted")
            return
        self._enter("publish")
        self._still_alone()
        version = self._store.add_copy(bundle, activate=False)
        self._enter("activate")
        self._still_alone()
        current = self._store.current()
        if current != self._report.champion:
            self._finish(
                "kept",
                f"the champion was {self._report.champion} when the run began, but is {current} "
                f"now; {version} is published, activate it by its name or run again",
            )
            return
        self._journal.activate(version, f"run {self._report.run_id}: {decision.reason}")
        self._finish("promoted", decision.reason)

    def _enter(self, phase: Phase) -> None:
        self._leave()
        self._phase = phase
        self._watcher.enter(phase)

    def _leave(self) -> None:
        entered, self._entered = self._entered, time.monotonic()
        if self._phase is not None:
            seconds = round(self._entered - entered, 3)
            self._note(phases=self._report.phases | {self._phase: seconds})
            self._phase = None

    def _note(self, **known: object) -> None:
        self._report = self._report.model_copy(update=known)

    def _finish(self, result: Result, reason: str) -> None:
        self._leave()
        finished_at = now()
        self._note(result=result, reason=reason, finished_at=to_datetime(finished_at))
        self._report.write(self._directory)
        self._journal.finish(
            self._report.run_id,
            finished_at=finished_at,
            result=result,
            candidate=self._report.candidate,
            reason=reason,
            report=self._report.model_dump(mode="json"),
        )
