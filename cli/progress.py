"""Progress of long commands: bars on a terminal, lines or structured log events elsewhere."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import final

import structlog
from rich.markup import escape
from rich.progress import TaskID
from structlog.typing import FilteringBoundLogger

from cli.console import console, print_message
from training.fitting.fit import EpochReport
from training.progress import TrainingProgress, create_bar
from training.retraining.job import Phase
from training.retraining.report import RunReport

_PHASE_TEXTS: dict[Phase, str] = {
    "read": "reading events",
    "fit": "fitting",
    "evaluate": "evaluating challenger, champion and references",
    "write": "writing the bundle",
    "gate": "applying the gate",
    "publish": "publishing",
    "activate": "activating",
    "prune": "removing old versions and runs",
}


@contextmanager
def show_row_progress(label: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show a bar of rows on a terminal.

    Yields:
        A function that advances the bar by a number of rows.
    """
    with create_bar(console, f"[bold]{label}[/]") as bar:
        task = bar.add_task("", total=total)
        yield lambda rows: bar.advance(task, rows)


@contextmanager
def show_stages() -> Iterator[Callable[[str, int], None]]:
    """Show a bar per stage on a terminal.

    Yields:
        A function that advances the bar of a stage, named by its first argument, by one of its
        tasks, which the second one counts.
    """
    with create_bar(console, "[bold]{task.description}[/]") as bar:
        known: dict[str, TaskID] = {}

        def advance(stage: str, tasks: int) -> None:
            if stage not in known:
                known[stage] = bar.add_task(stage, total=tasks)
            bar.advance(known[stage])

        yield advance


@final
class RetrainingBars(TrainingProgress):
    """Progress of retraining on a terminal: a line per phase, and a bar while fitting."""

    def start_phase(self, phase: Phase) -> None:
        """Print the phase that begins."""
        console.print(f"[bold]{phase}[/]  {_PHASE_TEXTS[phase]}", highlight=False)

    def end(self, report: RunReport) -> None:
        """Print the result and its reason."""
        print_message(f"[bold]{report.result}[/]  {escape(report.reason or '')}")


@final
class RetrainingLines:
    """Progress of retraining beside a service on the same terminal: a line per phase and epoch."""

    def __init__(self) -> None:
        self._fitting, self._epochs = "", 0

    def start_phase(self, phase: Phase) -> None:
        """Print the phase that begins."""
        print_message(f"[bold]training[/] {_PHASE_TEXTS[phase]}")

    def start_fit(self, name: str, epochs: int, done: int = 0) -> None:
        """Print how many epochs begin, and how many an interrupted run has completed."""
        self._fitting, self._epochs = name, epochs
        resumed = f", {done} done before" if done else ""
        planned = f"{epochs} epoch{'' if epochs == 1 else 's'}"
        print_message(f"[bold]training[/] {name}: {planned}{resumed}")

    def finish_step(self, done: int, of: int, loss: float) -> None:
        """Do nothing: steps are too frequent for lines."""

    def finish_epoch(self, report: EpochReport) -> None:
        """Print an epoch."""
        print_message(
            f"[bold]training[/] {self._fitting}: epoch {report.epoch} of {self._epochs}, "
            f"loss {report.loss:.4f} ({report.seconds:.1f} s)"
        )

    def end(self, report: RunReport) -> None:
        """Print the result and its reason."""
        print_message(f"[bold]training[/] {report.result}: {escape(report.reason or '')}")


@final
class RetrainingLog:
    """Progress of retraining as JSON log events: one per phase and per epoch."""

    def __init__(self) -> None:
        self._fitting, self._epochs = "", 0
        # Its own logger, because only `kairos serve` configures the logging of a process.
        self._log: FilteringBoundLogger = structlog.wrap_logger(
            structlog.PrintLogger(sys.stderr),
            processors=[
                structlog.processors.add_log_level,
                structlog.processors.TimeStamper(fmt="iso", utc=True),
                structlog.processors.JSONRenderer(),
            ],
        )

    def start_phase(self, phase: Phase) -> None:
        """Log the phase that begins."""
        self._log.info("retraining_phase", phase=phase)

    def start_fit(self, name: str, epochs: int, done: int = 0) -> None:  # noqa: ARG002
        """Set the fit that the next epochs belong to."""
        self._fitting, self._epochs = name, epochs

    def finish_step(self, done: int, of: int, loss: float) -> None:
        """Do nothing: steps are too frequent for a log."""

    def finish_epoch(self, report: EpochReport) -> None:
        """Log the metrics of an epoch."""
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
        """Log the result and its reason."""
        self._log.info(
            "retraining_ended",
            run_id=report.run_id,
            result=report.result,
            reason=report.reason,
            champion=report.champion,
            candidate=report.candidate,
        )
