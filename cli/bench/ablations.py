"""The `kairos bench ablations` command."""

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


def ablations_command(
    suite: SuiteNames = None,
    rows: RowNames = None,
    seeds: Seeds = None,
    epochs: Annotated[
        int | None, typer.Option(help="At most so many epochs; that of the recipe by default.")
    ] = None,
    data: Data = Path("data"),
    folder: Annotated[
        Path, typer.Option(help="Directory with ablations.toml and results/.")
    ] = Path("benchmarks/ablations"),
    papers: Annotated[Path, typer.Option(help="Directory with suites/ and recommended/.")] = PAPERS,
    jobs: Jobs = 2,
    threads: CellThreads = 1,
    device: Device = "cpu",
    quick: Quick = False,
    render: Annotated[bool, typer.Option("--render", help="Only render the page.")] = False,
) -> None:
    """Train the recommended recipe without each of its parts, and render what each is worth.

    Rows that change nothing for a data set are left out. Cells that are recorded with the same
    settings and data are skipped, so the same command resumes an interrupted run; a record of other
    data or another number of epochs is not replaced.
    """
    with exit_on_error():
        require_harness()
        # Imported here: the images of the service hold no benchmarks.
        from benchmarks.ablations.harness.ablations import (  # noqa: PLC0415
            Ablations,
            check_epochs,
            read_ablation,
            select_rows,
        )
        from benchmarks.ablations.harness.page import render_ablation  # noqa: PLC0415
        from benchmarks.papers.harness.plan import Selection  # noqa: PLC0415
        from benchmarks.papers.pages.findings import check_figures  # noqa: PLC0415

        if render:
            _render(folder, papers)
            return
        ablations = Ablations.read(folder)
        names = split_names(rows)
        chosen = dict.fromkeys(suite or ablations.suites)
        whole = [ablations.read_suite(name, papers) for name in chosen]
        for each in whole:
            check_figures(each)
        whole = [
            recommend_recipe_for(each, names, data, None if quick else papers) for each in whole
        ]
        shortened = QUICK_EPOCHS if quick else epochs
        if shortened is not None:
            whole = [each.shorten(shortened) for each in whole]
        suites = [select_rows(each, names) for each in whole]
        selection = Selection(
            data=data,
            results=folder / "results",
            seeds=parse_seeds(seeds),
            is_recorded=not quick,
            device=device,
            threads=threads,
            epochs=epochs,
            benchmark="ablations",
        )
        if quick:

            def render_tables(found: Path) -> list[str]:
                measured = ((each, read_ablation(found, each)) for each in whole)
                return [
                    render_ablation(found, each, rows_of) for each, rows_of in measured if rows_of
                ]

            succeeded = run_quickly(suites, selection, jobs, render_tables)
        else:
            for each in suites:
                check_epochs(each, selection.results, selection.seeds)
            succeeded = run_due_cells(suites, selection, jobs)
            _render(folder, papers)
    if not succeeded:
        raise typer.Exit(EXIT_FAILURE)


def _render(folder: Path, papers: Path) -> None:
    from benchmarks.ablations.harness.page import render_ablations  # noqa: PLC0415

    page = folder / "README.md"
    page.write_text(render_ablations(folder, papers), "utf-8")
    typer.echo(page)
