"""Commands that measure: the tables of the papers."""

import tempfile
from pathlib import Path
from typing import Annotated, final

import typer
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from benchmarks.papers.harness.cell import Cell, ProgressEvent, Record
from benchmarks.papers.harness.plan import Selection, plan
from benchmarks.papers.harness.results import read_measured
from benchmarks.papers.harness.schedule import run_cells
from benchmarks.papers.harness.suite import Suite
from benchmarks.papers.harness.table import render_suite
from cli.console import FAILURE, console, reporting_errors
from model.errors import KairosError

bench_app = typer.Typer(help="Measure: the tables of the papers.", no_args_is_help=True)

QUICK_USERS = 120
QUICK_EPOCHS = 2


@bench_app.callback()
def bench() -> None:
    """Measure: the tables of the papers."""


@bench_app.command("papers")
def papers_command(
    suite: Annotated[
        list[str] | None, typer.Option(help="A suite's name; may be given again.")
    ] = None,
    rows: Annotated[str | None, typer.Option(help="Only these rows: a,b.")] = None,
    seeds: Annotated[str | None, typer.Option(help="These seeds for every row: 0,1.")] = None,
    data: Annotated[Path, typer.Option(help="Where the data folders are.")] = Path(
        "../shared/data"
    ),
    folder: Annotated[Path, typer.Option(help="Where suites/ and results/ are.")] = Path(
        "benchmarks/papers"
    ),
    jobs: Annotated[int, typer.Option(help="Cells at a time, one thread each.", min=1)] = 2,
    device: Annotated[str, typer.Option(help="cpu, cuda or cuda:N.")] = "cpu",
    quick: Annotated[
        bool, typer.Option("--quick", help="Few users and epochs; nothing is recorded.")
    ] = False,
    render: Annotated[
        bool, typer.Option("--render", help="Only bring the page and its plots up to date.")
    ] = False,
    keep: Annotated[Path | None, typer.Option(help="Keep the bundles in this folder.")] = None,
) -> None:
    """Train the rows of a suite, record what they reached, and render it; run again to go on.

    A cell is a row with a seed. One whose record stands for the same settings and data is skipped.
    """
    with reporting_errors():
        if render:
            _render(folder)
            return
        suites = [Suite.read(folder / "suites" / f"{name}.toml") for name in suite or []]
        if not suites:
            raise KairosError("bench papers needs a suite, but got none; name one with --suite")
        selection = Selection(
            data=data,
            results=folder / "results",
            rows=() if rows is None else tuple(rows.split(",")),
            seeds=_numbers(seeds),
            device=device,
            keep=keep,
        )
        if quick:
            with tempfile.TemporaryDirectory() as passing:
                selection = selection._replace(results=Path(passing) / "results", users=QUICK_USERS)
                suites = [each.shortened(QUICK_EPOCHS) for each in suites]
                succeeded = _run(suites, selection, jobs)
                for each in suites:
                    if measured := read_measured(Path(passing), each):
                        typer.echo(render_suite(each, measured))
        else:
            succeeded = _run(suites, selection, jobs)
            _render(folder)
    if not succeeded:
        raise typer.Exit(FAILURE)


def _run(suites: list[Suite], selection: Selection, jobs: int) -> bool:
    """Whether every cell has its record now."""
    plans = [plan(suite, selection) for suite in suites]
    cells = [cell for each in plans for cell in each.cells]
    failures = [failure for each in plans for failure in each.failures]
    due = [cell for cell in cells if not cell.is_done]
    _say(f"{len(cells)} cells, {len(cells) - len(due)} of them recorded already")
    with Board(len(due)) as board:
        failures += run_cells(due, jobs=jobs, progress=board)
    for failure in failures:
        _say(f"[bold red]failed[/] {failure.name}: {escape(failure.reason)}")
    return not failures


def _render(folder: Path) -> None:
    try:
        # Plots need matplotlib, which no other command does.
        from benchmarks.papers.harness.render import render  # noqa: PLC0415
    except ImportError as error:
        raise KairosError(
            f"rendering needs matplotlib, but: {error}; install kairos[bench]"
        ) from error
    for file in render(folder):
        typer.echo(file)


@final
class Board:
    """A line per running cell, and one per finished one; plain lines without a terminal."""

    def __init__(self, cells: int) -> None:
        self._cells = cells
        self._ended = 0
        self._tasks: dict[str, TaskID] = {}
        self._bar = Progress(
            TextColumn("[bold]{task.description}[/]"),
            BarColumn(),
            TextColumn("{task.fields[told]}"),
            TimeElapsedColumn(),
            console=console,
            disable=not console.is_terminal,
        )

    def __enter__(self) -> "Board":
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def start(self, cell: Cell) -> None:
        """Begin a line."""
        self._tasks[cell.name] = self._bar.add_task(cell.name, total=None, told="")
        if not console.is_terminal:
            _say(f"{cell.name}: started")

    def update(self, cell: Cell, event: ProgressEvent) -> None:
        """Move a line on."""
        monitor = cell.config.fit.monitor
        told = f"epoch {event.epoch}/{event.of} loss {event.loss:.4f}"
        if event.validation is not None and monitor in event.validation:
            told += f" {monitor} {event.validation[monitor]:.4f}"
        self._bar.update(
            self._tasks[cell.name],
            total=float(event.of),
            completed=event.epoch - 1 + event.share,
            told=told,
        )
        if event.validation is not None and not console.is_terminal:
            _say(f"{cell.name}: {told} ({event.seconds:.1f} s)")

    def finish(self, cell: Cell, record: Record) -> None:
        """End a line with the figures on the test questions."""
        figures = record.report.rows["model"]
        shown = (cell.config.fit.monitor, *("ndcg@10", "hit_rate@10", "mrr"))
        told = "  ".join(f"{name} {figures[name]:.4f}" for name in dict.fromkeys(shown))
        self._end(cell, f"[green]done[/] {cell.name}: {told} ({record.seconds:.0f} s)")

    def fail(self, cell: Cell, reason: str) -> None:
        """End a line with what went wrong."""
        self._end(cell, f"[bold red]failed[/] {cell.name}: {escape(reason)}")

    def _end(self, cell: Cell, told: str) -> None:
        self._ended += 1
        self._bar.remove_task(self._tasks.pop(cell.name))
        _say(f"{self._ended}/{self._cells} {told}")


def _say(told: str) -> None:
    console.print(told, highlight=False, soft_wrap=True)


def _numbers(text: str | None) -> tuple[int, ...]:
    try:
        return () if text is None else tuple(int(number) for number in text.split(","))
    except ValueError as error:
        raise KairosError(
            f"seeds are whole numbers with commas between them, but got {text!r}; write 0,1"
        ) from error
