"""How far a retraining run is, for those who cannot see its terminal."""

import math
import time
from collections.abc import Callable
from typing import NamedTuple, final

from training.config import FitConfig
from training.fitting.fit import EpochReport
from training.retraining.job import Phase, RetrainingProgress
from training.run import count_refit_epochs

SECONDS_BETWEEN_RECORDS = 2.0
"""Least interval between two records within an epoch."""


class RunProgress(NamedTuple):
    """How far a run is.

    Attributes:
        fit: the running fit, "fit" or "refit"; None outside of one.
        epoch: the running epoch of that fit, from 1.
        epochs: most epochs of that fit.
        share: of the planned epochs of all fits that are done; a fit may end early.
        seconds_left: until the planned epochs are done, at the pace so far; None if that is not
            known, and outside of a fit.
    """

    phase: Phase
    fit: str | None = None
    epoch: int | None = None
    epochs: int | None = None
    share: float = 0.0
    seconds_left: float | None = None


@final
class TrackedProgress:
    """Forwards the progress of a run, and records how far it is.

    Args:
        record: called at every phase and epoch, and every few seconds while fitting.
    """

    def __init__(
        self,
        shown: RetrainingProgress,
        config: FitConfig,
        record: Callable[[RunProgress], None],
    ) -> None:
        self._shown = shown
        self._config = config
        self._record = record
        self._refits_left = int(config.refit_before_test) + int(config.refit)
        self._at: RunProgress | None = None
        self._recorded_at = -math.inf
        self._done, self._left = 0.0, 0.0
        self._pace: _Pace | None = None

    def start_phase(self, phase: Phase) -> None:
        """Record the phase that begins."""
        self._shown.start_phase(phase)
        self._show(RunProgress(phase, share=self._compute_share()))

    def start_fit(self, name: str, epochs: int, done: int = 0) -> None:
        """Record the fit that begins, and plan the epochs of those after it."""
        self._shown.start_fit(name, epochs, done)
        if name == "refit":
            self._refits_left -= 1
        self._pace = self._pace or _Pace(time.monotonic())
        self._done += done
        refit = epochs if name == "refit" else count_refit_epochs(self._config, epochs)
        self._left = epochs - done + self._refits_left * refit
        at = self._at or RunProgress("fit")
        self._show(at._replace(fit=name, epoch=min(done + 1, epochs), epochs=epochs))

    def finish_step(self, done: int, of: int, loss: float) -> None:
        """Record a batch, unless there is a record of the last seconds."""
        self._shown.finish_step(done, of, loss)
        if time.monotonic() - self._recorded_at >= SECONDS_BETWEEN_RECORDS and self._at is not None:
            self._show(self._at, running=done / of)

    def finish_epoch(self, report: EpochReport) -> None:
        """Record an epoch."""
        self._shown.finish_epoch(report)
        self._done, self._left = self._done + 1, self._left - 1
        if self._pace is not None:
            self._pace.epochs += 1
        if self._at is not None and self._at.epochs is not None:
            self._show(self._at._replace(epoch=min(report.epoch + 1, self._at.epochs)))

    def _show(self, at: RunProgress, running: float = 0.0) -> None:
        """Record a state, with the share and the time of the epochs that are left.

        Args:
            running: the share of the running epoch that is done.
        """
        left = self._left - running
        seconds = None
        if at.fit is not None and self._pace is not None and left > 0:
            seconds = self._pace.estimate_seconds(left, running)
        self._at = at._replace(share=self._compute_share(running), seconds_left=seconds)
        self._recorded_at = time.monotonic()
        self._record(self._at)

    def _compute_share(self, running: float = 0.0) -> float:
        planned = self._done + self._left
        return (self._done + running) / planned if planned else 0.0


class _Pace:
    """The pace of this process: epochs since an instant of the monotonic clock."""

    def __init__(self, began: float) -> None:
        self.began = began
        self.epochs = 0

    def estimate_seconds(self, left: float, running: float) -> float | None:
        """Estimate the time of some epochs; None before there is a pace."""
        done = self.epochs + running
        return (time.monotonic() - self.began) / done * left if done else None
