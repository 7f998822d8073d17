"""The progress of cells on the terminal."""

from typing import TYPE_CHECKING, final

from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from cli.console import console, print_message

if TYPE_CHECKING:
    from benchmarks.papers.harness.cell import Cell, ProgressEvent
    from benchmarks.papers.harness.record import Record


@final
class Board:
    """A bar per running cell and a line per finished one; lines only without a terminal."""

    def __init__(self, cells: int) -> None:
        self._cells = cells
        self._ended = 0
        self._tasks: dict[str, TaskID] = {}
        self._bar = Progress(
            TextColumn("[bold]{task.description}[/]"),
            BarColumn(),
            TextColumn("{task.fields[status]}"),
            TimeElapsedColumn(),
            console=console,
            disable=not console.is_terminal,
        )

    def __enter__(self) -> "Board":
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def start(self, cell: "Cell") -> None:
        """Start the bar of a cell."""
        self._tasks[cell.name] = self._bar.add_task(cell.name, total=None, status="")
        if not console.is_terminal:
            print_message(f"{cell.name}: started")

    def update(self, cell: "Cell", event: "ProgressEvent") -> None:
        """Advance the bar of a cell."""
        monitor = cell.config.fit.monitor
        status = (
            f"epoch {event.epoch}/{event.of}" if event.trial is None else f"trial {event.trial}"
        )
        if event.loss is not None:
            status += f" loss {event.loss:.4f}"
        if event.validation is not None and monitor in event.validation:
            status += f" {monitor} {event.validation[monitor]:.4f}"
        of = None if event.trial is not None else float(event.of)
        self._bar.update(
            self._tasks[cell.name],
            total=of,
            completed=event.epoch - 1 + event.share,
            status=status,
        )
        if event.validation is not None and not console.is_terminal:
            print_message(f"{cell.name}: {status} ({event.seconds:.1f} s)")

    def finish(self, cell: "Cell", record: "Record") -> None:
        """Remove the bar, and print the metrics on the test questions."""
        figures = record.report.rows["model"]
        names = (cell.config.fit.monitor, *("ndcg@10", "hit_rate@10", "mrr"))
        metrics = "  ".join(f"{name} {figures[name]:.4f}" for name in dict.fromkeys(names))
        self._end(cell, f"[green]done[/] {cell.name}: {metrics} ({record.seconds:.0f} s)")

    def fail(self, cell: "Cell", reason: str) -> None:
        """Remove the bar, and print the reason of the failure."""
        self._end(cell, f"[bold red]failed[/] {cell.name}: {escape(reason)}")

    def _end(self, cell: "Cell", line: str) -> None:
        self._ended += 1
        self._bar.remove_task(self._tasks.pop(cell.name))
        print_message(f"{self._ended}/{self._cells} {line}")
