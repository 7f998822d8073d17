"""The `kairos bench` command."""

import typer

from cli.bench.ablations import ablations_command
from cli.bench.papers import papers_command

bench_app = typer.Typer(help="Run benchmarks.", no_args_is_help=True)
bench_app.command("papers")(papers_command)
bench_app.command("ablations")(ablations_command)


@bench_app.callback()
def bench() -> None:
    """Run benchmarks."""
