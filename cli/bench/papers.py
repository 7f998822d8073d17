"""The `kairos bench papers` command."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from cli.bench.cells import (
    PAPERS,
    QUICK_EPOCHS,
    CellThreads,
    Data,
    Device,
    Jobs,
    Quick,
    RowNames,
    Seeds,
    SuiteNames,
    parse_seeds,
    recommend_recipe_for,
    require_harness,
    run_due_cells,
    run_quickly,
    split_names,
)
from cli.console import EXIT_FAILURE, exit_on_error
from model.errors import KairosError


def papers_command(
    suite: SuiteNames = None,
    rows: RowNames = None,
    seeds: Seeds = None,
    data: Data = Path("data"),
    folder: Annotated[Path, typer.Option(help="Directory with suites/ and results/.")] = PAPERS,
    jobs: Jobs = 2,
    threads: CellThreads = 1,
    device: Device = "cpu",
    quick: Quick = False,
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
    skipped, so the same command resumes an interrupted run; a record of other data is not replaced.
    Rows with the recommended recipe take it from the data; it is written to the directory
    recommended/.
    """
    with exit_on_error():
        require_harness()
        chosen_seeds = parse_seeds(seeds)
        of_runs = {"--seeds": seeds, "--quick": quick, "--keep": keep}
        if render:
            _refuse_beside("--render", {"--suite": suite, "--rows": rows, **of_runs})
            _render(folder)
            return
        if recommend:
            _refuse_beside("--recommend", of_runs)
        # Imported here: the images of the service hold no benchmarks.
        from benchmarks.papers.harness.measured_suite import MeasuredSuite  # noqa: PLC0415
        from benchmarks.papers.harness.plan import Selection  # noqa: PLC0415
        from benchmarks.papers.harness.suite import Suite  # noqa: PLC0415
        from benchmarks.papers.pages.findings import check_figures  # noqa: PLC0415
        from benchmarks.papers.pages.tables_page import render_suite  # noqa: PLC0415

        suites = [
            Suite.read(folder / "suites" / f"{name}.toml") for name in dict.fromkeys(suite or [])
        ]
        if not suites:
            raise KairosError("bench papers needs a suite, but got none; name one with --suite")
        for each in suites:
            check_figures(each)
        selected = split_names(rows)
        suites = [
            recommend_recipe_for(each, selected, data, None if quick else folder) for each in suites
        ]
        if recommend:
            return
        selection = Selection(
            data=data,
            results=folder / "results",
            rows=selected,
            seeds=chosen_seeds,
            is_recorded=not quick,
            device=device,
            threads=threads,
            keep=keep,
        )
        if quick:
            suites = [each.shorten(QUICK_EPOCHS) for each in suites]

            def render_tables(found: Path) -> list[str]:
                measured = (MeasuredSuite.read(found, each) for each in suites)
                return [
                    render_suite(each.suite, each.measured, each.comparison, is_quick=True)
                    for each in measured
                    if each.measured
                ]

            succeeded = run_quickly(suites, selection, jobs, render_tables)
        else:
            succeeded = run_due_cells(suites, selection, jobs)
            _render(folder)
    if not succeeded:
        raise typer.Exit(EXIT_FAILURE)


def _refuse_beside(option: str, others: Mapping[str, object]) -> None:
    """Refuse options that would change nothing beside another."""
    if given := [name for name, value in others.items() if value]:
        raise KairosError(
            f"beside {option}, {' and '.join(given)} would change nothing; leave out one or the "
            "other"
        )


def _render(folder: Path) -> None:
    try:
        # Plots need matplotlib, which is an optional dependency.
        from benchmarks.papers.pages.render import render  # noqa: PLC0415
    except ImportError as error:
        raise KairosError(
            f"rendering needs matplotlib, but: {error}; install kairos[bench]"
        ) from error
    for file in render(folder):
        typer.echo(file)
