"""The `kairos bench` command."""

import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, final

import typer
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from cli.console import EXIT_FAILURE, console, exit_on_error, print_message
from model.errors import KairosError

if TYPE_CHECKING:
    from benchmarks.papers.harness.cell import Cell, ProgressEvent, Record
    from benchmarks.papers.harness.plan import Selection
    from benchmarks.papers.harness.suite import Suite

bench_app = typer.Typer(help="Run benchmarks.", no_args_is_help=True)

QUICK_USERS = 120
QUICK_EPOCHS = 2


@bench_app.callback()
def bench() -> None:
    """Run benchmarks."""


@bench_app.command("papers")
def papers_command(
    suite: Annotated[list[str] | None, typer.Option(help="A suite's name; repeatable.")] = None,
    rows: Annotated[str | None, typer.Option(help="Only these rows: a,b.")] = None,
    seeds: Annotated[str | None, typer.Option(help="These seeds for every row: 0,1.")] = None,
    data: Annotated[Path, typer.Option(help="Directory of the data sets.")] = Path("data"),
    folder: Annotated[Path, typer.Option(help="Directory with suites/ and results/.")] = Path(
        "benchmarks/papers"
    ),
    jobs: Annotated[int, typer.Option(help="Cells that run in parallel.", min=1)] = 2,
    threads: Annotated[int, typer.Option(help="Threads of each cell.", min=1)] = 1,
    device: Annotated[str, typer.Option(help="cpu, cuda or cuda:N.")] = "cpu",
    quick: Annotated[
        bool, typer.Option("--quick", help="Few users and epochs; nothing is recorded.")
    ] = False,
    render: Annotated[
        bool, typer.Option("--render", help="Only render the page and its plots.")
    ] = False,
    recommend: Annotated[
        bool, typer.Option("--recommend", help="Only write the recommended recipes of the suites.")
    ] = False,
    keep: Annotated[Path | None, typer.Option(help="Directory to keep the bundles in.")] = None,
) -> None:
    """Train the rows of suites, record their metrics, and render the tables of the papers.

    A cell is a row with a seed. Cells that are recorded with the same settings and data are
    skipped, so the same command resumes an interrupted run. Rows with the recommended recipe take
    it from the data; it is written to the directory recommended/.
    """
    with exit_on_error():
        _require_harness()
        if render:
            _render(folder)
            return
        # Imported here: the images of the service hold no benchmarks.
        from benchmarks.papers.harness.plan import Selection  # noqa: PLC0415
        from benchmarks.papers.harness.results import read_measured  # noqa: PLC0415
        from benchmarks.papers.harness.suite import Suite  # noqa: PLC0415
        from benchmarks.papers.harness.table import render_suite  # noqa: PLC0415

        suites = [Suite.read(folder / "suites" / f"{name}.toml") for name in suite or []]
        if not suites:
            raise KairosError("bench papers needs a suite, but got none; name one with --suite")
        selected = () if rows is None else tuple(rows.split(","))
        suites = [_recommend(each, selected, data, None if quick else folder) for each in suites]
        if recommend:
            return
        selection = Selection(
            data=data,
            results=folder / "results",
            rows=selected,
            seeds=_parse_seeds(seeds),
            device=device,
            threads=threads,
            keep=keep,
        )
        if quick:
            with tempfile.TemporaryDirectory() as temporary:
                selection = selection._replace(
                    results=Path(temporary) / "results", users=QUICK_USERS
                )
                suites = [each.shorten(QUICK_EPOCHS) for each in suites]
                succeeded = _run(suites, selection, jobs)
                for each in suites:
                    if measured := read_measured(Path(temporary), each):
                        typer.echo(render_suite(each, measured))
        else:
            succeeded = _run(suites, selection, jobs)
            _render(folder)
    if not succeeded:
        raise typer.Exit(EXIT_FAILURE)


def _require_harness() -> None:
    """Check that the benchmarks are installed.

    Raises:
        KairosError: if they are not.
    """
    if find_spec("benchmarks") is None:
        raise KairosError(
            "kairos bench runs in a clone of the repository, but there is no package `benchmarks`; "
            "clone it and run make setup"
        )


def _recommend(suite: "Suite", rows: tuple[str, ...], data: Path, folder: Path | None) -> "Suite":
    """Recommend a recipe for the suite if a selected row needs it; see `recommend_for_suite`."""
    from benchmarks.papers.harness.recommended import recommend_for_suite  # noqa: PLC0415

    selected = [suite.row(name) for name in rows] or suite.rows
    if all(row.recipe != "recommended" for row in selected):
        return suite
    recommended = recommend_for_suite(suite, data, folder=folder)
    if recommended != suite and folder is not None:
        print_message(f"{suite.name}: the recommended recipe has changed")
    return recommended


def _run(suites: "list[Suite]", selection: "Selection", jobs: int) -> bool:
    """Run the cells that have no record; return whether all have one now."""
    from benchmarks.papers.harness.plan import plan  # noqa: PLC0415
    from benchmarks.papers.harness.schedule import run_cells  # noqa: PLC0415

    plans = [plan(suite, selection) for suite in suites]
    cells = [cell for each in plans for cell in each.cells]
    failures = [failure for each in plans for failure in each.failures]
    due = [cell for cell in cells if not cell.is_done]
    print_message(f"{len(cells)} cells, {len(cells) - len(due)} of them recorded already")
    with Board(len(due)) as board:
        failures += run_cells(due, jobs=jobs, progress=board)
    for failure in failures:
        print_message(f"[bold red]failed[/] {failure.name}: {escape(failure.reason)}")
    return not failures


def _render(folder: Path) -> None:
    try:
        # Plots need matplotlib, which is an optional dependency.
        from benchmarks.papers.harness.render import render  # noqa: PLC0415
    except ImportError as error:
        raise KairosError(
            f"rendering needs matplotlib, but: {error}; install kairos[bench]"
        ) from error
    for file in render(folder):
        typer.echo(file)


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
        status = f"epoch {event.epoch}/{event.of} loss {event.loss:.4f}"
        if event.validation is not None and monitor in event.validation:
            status += f" {monitor} {event.validation[monitor]:.4f}"
        self._bar.update(
            self._tasks[cell.name],
            total=float(event.of),
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


def _parse_seeds(text: str | None) -> tuple[int, ...]:
    try:
        return () if text is None else tuple(int(number) for number in text.split(","))
    except ValueError as error:
        raise KairosError(
            f"seeds are whole numbers separated by commas, but got {text!r}; write 0,1"
        ) from error
