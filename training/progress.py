"""The progress of a fit as a bar, in a terminal or a notebook."""

from importlib.util import find_spec
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from training.fitting.fit import EpochReport


class TrainingProgress:
    """A bar per fit with loss, metric and time left; one line per epoch where none can be shown."""

    def __init__(self, monitor: str, console: Console) -> None:
        self._monitor, self._console = monitor, console
        self._bar = create_bar(console, "[bold]{task.description}[/]", "{task.fields[status]}")
        self._task = self._bar.add_task("", total=1, status="", visible=False)
        self._epochs = 0
        self._epoch = 0
        self._metric = ""

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        self._bar.stop()

    def start_fit(self, name: str, epochs: int, done: int = 0) -> None:
        """Start the bar of a fit."""
        self._epochs, self._epoch, self._metric = epochs, done, ""
        self._bar.remove_task(self._task)
        self._task = self._bar.add_task(name, total=None, status="")

    def finish_step(self, done: int, of: int, loss: float) -> None:
        """Advance the bar to batch `done` of the epoch's `of` batches."""
        self._bar.update(
            self._task,
            total=of * self._epochs,
            completed=of * self._epoch + done,
            status=f"epoch {self._epoch + 1}/{self._epochs}  loss {loss:.4f}{self._metric}",
        )

    def finish_epoch(self, report: EpochReport) -> None:
        """Show the metrics of an epoch."""
        self._epoch = report.epoch
        if self._monitor in report.validation:
            self._metric = f"  {self._monitor} {report.validation[self._monitor]:.4f}"
        if not _can_show_bars(self._console):
            self._console.print(
                f"epoch {report.epoch}/{self._epochs} loss {report.loss:.4f}{self._metric} "
                f"({report.seconds:.1f} s)",
                highlight=False,
            )


def create_bar(console: Console, *texts: str) -> Progress:
    """Create a bar with texts before and after it; it is hidden where it cannot be redrawn."""
    description, *others = (TextColumn(text) for text in texts)
    return Progress(
        description,
        BarColumn(),
        MofNCompleteColumn(),
        *others,
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
        disable=not _can_show_bars(console),
    )


def _can_show_bars(console: Console) -> bool:
    """Return whether a bar can be redrawn: on a terminal, or as a widget in Jupyter."""
    return console.is_terminal or (console.is_jupyter and find_spec("ipywidgets") is not None)
