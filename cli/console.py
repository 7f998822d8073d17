"""How the command line speaks: tables, progress, and errors with an exit code."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import final

import typer
from pydantic import ValidationError
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from model.errors import KairosError
from training.evaluation.report import Report
from training.fitting.fit import EpochReport

FAILURE = 1
"""Exit code where Kairos refused to go on; usage errors exit with 2."""

console = Console(stderr=True)
"""For people. What programs read goes to standard output."""


@contextmanager
def reporting_errors() -> Iterator[None]:
    """Turn a refusal into one readable line and a non-zero exit code."""
    try:
        yield
    except (KairosError, ValidationError, OSError) as error:
        told = settings_told(error) if isinstance(error, ValidationError) else str(error)
        console.print(f"[bold red]error[/] {escape(told)}", highlight=False, soft_wrap=True)
        raise typer.Exit(FAILURE) from error


def settings_told(error: ValidationError) -> str:
    """What is wrong with the environment, by the names the variables have there."""
    return "; ".join(
        f"KAIROS_{'_'.join(map(str, broken['loc'])).upper()}: "
        f"{broken['msg'][:1].lower()}{broken['msg'][1:]}, but got {broken['input']!r}"
        for broken in error.errors()
    )


@contextmanager
def counting(label: str, total: int) -> Iterator["Counter"]:
    """A bar that counts rows, where a terminal is there."""
    with _bar(f"[bold]{label}[/]") as bar:
        yield Counter(bar, bar.add_task("", total=total))


@final
class Counter:
    """Advances a bar."""

    def __init__(self, bar: Progress, task: TaskID) -> None:
        self._bar, self._task = bar, task

    def __call__(self, rows: int) -> None:
        """So many rows more."""
        self._bar.advance(self._task, rows)


@final
class TrainingProgress:
    """A bar per phase with loss, metric and time left; plain lines where there is no terminal."""

    def __init__(self, monitor: str) -> None:
        self._monitor = monitor
        self._bar = _bar("[bold]{task.description}[/]", "{task.fields[told]}")
        self._task = self._bar.add_task("", total=1, told="", visible=False)
        self._epochs = 0
        self._epoch = 0
        self._metric = ""

    def __enter__(self) -> "TrainingProgress":
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def start_fit(self, name: str, epochs: int) -> None:
        """Begin a bar of its own."""
        self._epochs, self._epoch, self._metric = epochs, 0, ""
        self._bar.remove_task(self._task)
        self._task = self._bar.add_task(name, total=None, told="")

    def finish_step(self, done: int, of: int, loss: float) -> None:
        """Advance by a batch."""
        self._bar.update(
            self._task,
            total=of * self._epochs,
            completed=of * self._epoch + done,
            told=f"epoch {self._epoch + 1}/{self._epochs}  loss {loss:.4f}{self._metric}",
        )

    def finish_epoch(self, report: EpochReport) -> None:
        """Note an epoch's figures."""
        self._epoch = report.epoch
        if self._monitor in report.validation:
            self._metric = f"  {self._monitor} {report.validation[self._monitor]:.4f}"
        if not console.is_terminal:
            console.print(
                f"epoch {report.epoch}/{self._epochs} loss {report.loss:.4f}{self._metric} "
                f"({report.seconds:.1f} s)",
                highlight=False,
            )


def _bar(*texts: str) -> Progress:
    described, *told = (TextColumn(text) for text in texts)
    return Progress(
        described,
        BarColumn(),
        MofNCompleteColumn(),
        *told,
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
    )


def print_table(table: Table) -> None:
    """A table on standard output, wide enough to be read by programs too."""
    Console(file=sys.stdout, width=None if sys.stdout.isatty() else 120).print(table)


def print_report(report: Report) -> None:
    """The table of a run on standard output."""
    table = Table(title="test questions, whole catalogue ranked")
    columns = ("hit_rate@10", "ndcg@10", "recall@10", "mrr", "accuracy")
    table.add_column("ranker")
    for column in columns:
        table.add_column(column, justify="right")
    table.add_column("model ahead in ndcg@10 (95 %)", justify="right")
    for name, row in report.rows.items():
        ahead = report.ahead.get(name)
        lead = "" if ahead is None else f"{ahead.mean:+.4f} ({ahead.low:+.4f}, {ahead.high:+.4f})"
        table.add_row(name, *(f"{row[column]:.4f}" for column in columns), lead)
    print_table(table)
    for name, row in report.after_a_gap.items():
        if name == "model" and row["questions"]:
            console.print(
                f"after a gap: ndcg@10 {row['ndcg@10']:.4f} on {row['questions']:.0f} of "
                f"{report.rows['model']['questions']:.0f} questions; "
                f"cold targets {report.cold_targets:.2%}",
                highlight=False,
            )
