"""How far retraining has come: bars where a terminal is there, structured log lines where not."""

import sys
from types import TracebackType
from typing import Self, final

import structlog
from rich.markup import escape
from structlog.typing import FilteringBoundLogger

from cli.console import TrainingProgress, console
from training.fitting.fit import EpochReport
from training.retraining.job import Phase
from training.retraining.report import RunReport

_TOLD: dict[Phase, str] = {
    "read": "reading events",
    "fit": "fitting",
    "evaluate": "asking challenger, champion and references",
    "write": "writing the bundle",
    "gate": "asking the gate",
    "publish": "publishing",
    "activate": "activating",
    "prune": "clearing away old versions and runs",
}


@final
class Bars:
    """A line per phase, and a bar while weights are fitted."""

    def __init__(self, monitor: str) -> None:
        self._progress = TrainingProgress(monitor)

    def __enter__(self) -> Self:
        self._progress.__enter__()
        return self

    def __exit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        self._progress.__exit__()

    def start_phase(self, phase: Phase) -> None:
        """Say what comes now."""
        console.print(f"[bold]{phase}[/]  {_TOLD[phase]}", highlight=False)

    def start_fit(self, name: str, epochs: int) -> None:
        """Begin a bar."""
        self._progress.start_fit(name, epochs)

    def finish_step(self, done: int, of: int, loss: float) -> None:
        """Move it on."""
        self._progress.finish_step(done, of, loss)

    def finish_epoch(self, report: EpochReport) -> None:
        """Note an epoch's figures."""
        self._progress.finish_epoch(report)

    def end(self, report: RunReport) -> None:
        """Say what came of it all."""
        told = f"[bold]{report.result}[/]  {escape(report.reason or '')}"
        console.print(told, highlight=False, soft_wrap=True)


@final
class LogLines:
    """One line per phase and per epoch, for a log collector."""

    def __init__(self) -> None:
        self._fitting, self._epochs = "", 0
        # A logger of its own: how a whole process logs is decided by `kairos serve` alone.
        self._log: FilteringBoundLogger = structlog.wrap_logger(
            structlog.PrintLogger(sys.stderr),
            processors=[
                structlog.processors.add_log_level,
                structlog.processors.TimeStamper(fmt="iso", utc=True),
                structlog.processors.JSONRenderer(),
            ],
        )

    def start_phase(self, phase: Phase) -> None:
        """Say what comes now."""
        self._log.info("retraining_phase", phase=phase)

    def start_fit(self, name: str, epochs: int) -> None:
        """Remember what is fitted."""
        self._fitting, self._epochs = name, epochs

    def finish_step(self, done: int, of: int, loss: float) -> None:
        """Too often for a log."""

    def finish_epoch(self, report: EpochReport) -> None:
        """Note an epoch's figures."""
        self._log.info(
            "retraining_epoch",
            fitting=self._fitting,
            epoch=report.epoch,
            of=self._epochs,
            loss=report.loss,
            seconds=round(report.seconds, 2),
            **report.validation,
        )

    def end(self, report: RunReport) -> None:
        """Say what came of it all."""
        self._log.info(
            "retraining_ended",
            run_id=report.run_id,
            result=report.result,
            reason=report.reason,
            champion=report.champion,
            candidate=report.candidate,
        )
