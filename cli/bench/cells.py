"""What the benchmarks share: options, and the run of their cells."""

import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from cli.bench.board import Board
from cli.console import print_message
from model.errors import KairosError

if TYPE_CHECKING:
    from benchmarks.papers.harness.plan import Selection
    from benchmarks.papers.harness.suite import Suite

QUICK_USERS = 120
QUICK_EPOCHS = 2

PAPERS = Path("benchmarks/papers")

SuiteNames = Annotated[list[str] | None, typer.Option(help="A suite's name; repeatable.")]
RowNames = Annotated[str | None, typer.Option(help="Only these rows: a,b.")]
Seeds = Annotated[str | None, typer.Option(help="These seeds of every row: 0,1.")]
Data = Annotated[
    Path,
    typer.Option(help="Directory of the data sets; that of the suite retail ships in demo/."),
]
Jobs = Annotated[int, typer.Option(help="Cells that run in parallel.", min=1)]
CellThreads = Annotated[int, typer.Option(help="Threads of each cell.", min=1)]
Device = Annotated[str, typer.Option(help="cpu, cuda or cuda:N.")]
Quick = Annotated[bool, typer.Option("--quick", help="Few users and epochs; nothing is recorded.")]


def require_harness() -> None:
    """Check that the benchmarks are installed.

    Raises:
        KairosError: if they are not.
    """
    if find_spec("benchmarks") is None:
        raise KairosError(
            "kairos bench runs in a clone of the repository, but there is no package `benchmarks`; "
            "clone it and run make setup"
        )


def recommend_recipe_for(
    suite: "Suite", rows: tuple[str, ...], data: Path, folder: Path | None
) -> "Suite":
    """Recommend a recipe for the suite if a selected row needs it; see `recommend_for_suite`."""
    from benchmarks.papers.harness.recommended import recommend_for_suite  # noqa: PLC0415

    selected = [suite.row(name) for name in rows] or suite.rows
    if all(row.recipe != "recommended" for row in selected):
        return suite
    recommended = recommend_for_suite(suite, data, folder=folder)
    if recommended != suite and folder is not None:
        file = folder / "recommended" / f"{suite.name}.toml"
        print_message(f"{suite.name}: the recommended recipe was written to {escape(str(file))}")
    return recommended


def run_due_cells(suites: "list[Suite]", selection: "Selection", jobs: int) -> bool:
    """Run the cells that have no record; return whether all have one now.

    Raises:
        KairosError: if torch cannot use the device, or the cells cannot be planned.
    """
    from benchmarks.papers.harness.plan import plan  # noqa: PLC0415
    from benchmarks.papers.harness.schedule import run_cells  # noqa: PLC0415
    from training.device import parse_device  # noqa: PLC0415

    parse_device(selection.device)  # before any process is started
    plans = [plan(suite, selection) for suite in suites]
    cells = [cell for each in plans for cell in each.cells]
    invalid = [failure for each in plans for failure in each.failures]
    due = [cell for cell in cells if not cell.is_done]
    recorded = len(cells) - len(due)
    without = ", whose bundles are not kept: delete their records to run them again"
    is_unkept = recorded and selection.keep is not None
    print_message(
        f"{len(cells)} cells, {recorded} of them recorded already{without * bool(is_unkept)}"
    )
    for cell in due:
        if earlier := cell.count_earlier_trials():
            file = escape(str(cell.trials_file))
            print_message(f"{cell.name}: reuses the trials of {file} ({earlier})")
    with Board(len(due)) as board:
        failed = run_cells(due, jobs=jobs, progress=board)
    # The failure of a single cell stands on the last line already.
    for failure in invalid + failed * (len(due) > 1):
        print_message(f"[bold red]failed[/] {failure.name}: {escape(failure.reason)}")
    return not invalid + failed


def run_quickly(
    suites: "list[Suite]", selection: "Selection", jobs: int, render: Callable[[Path], list[str]]
) -> bool:
    """Run cells with few users, print their tables and keep no record; see `run_due_cells`.

    Args:
        render: renders the tables from the directory that holds results/.
    """
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        few = selection._replace(results=folder / "results", users=QUICK_USERS)
        succeeded = run_due_cells(suites, few, jobs)
        for table in render(folder):
            typer.echo(table)
    return succeeded


def split_names(text: str | None) -> tuple[str, ...]:
    """Split names such as a,b, each once; empty for None."""
    return () if text is None else tuple(dict.fromkeys(name.strip() for name in text.split(",")))


def parse_seeds(text: str | None) -> tuple[int, ...]:
    """Parse seeds such as 0,1, each once; empty for None.

    Raises:
        KairosError: if they are not whole numbers.
    """
    try:
        return () if text is None else tuple(dict.fromkeys(map(int, text.split(","))))
    except ValueError as error:
        raise KairosError(
            f"seeds are whole numbers separated by commas, but got {text!r}; write 0,1"
        ) from error
