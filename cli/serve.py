"""The `kairos serve` command."""

from pathlib import Path
from typing import Annotated

import typer

from cli.console import exit_on_error, print_dashboard_link


def serve_command(
    host: Annotated[str | None, typer.Option(help="Replaces KAIROS_HOST.")] = None,
    port: Annotated[int | None, typer.Option(help="Replaces KAIROS_PORT.")] = None,
    workers: Annotated[
        int | None,
        typer.Option(min=1, max=256, help="Processes that serve. Replaces KAIROS_WORKERS."),
    ] = None,
    events: Annotated[
        str | None,
        typer.Option(
            help="Serve these events: a Parquet, CSV, TSV or JSONL file, or a directory or glob of "
            "them. Imports them into a database of their own, serves counts of them at once, and "
            "trains the recipe that kairos inspect recommends meanwhile."
        ),
    ] = None,
    items: Annotated[
        str | None, typer.Option(help="With --events: titles and categories, a file.")
    ] = None,
    directory: Annotated[
        Path,
        typer.Option(
            help="With --events: where a directory for the database, bundles and runs of these "
            "events is made; its name has a digest of them."
        ),
    ] = Path("var"),
) -> None:
    """Run the service. docs/operations.md lists its settings, the KAIROS_* variables.

    On a terminal it prints a link to the dashboard.
    """
    from app import server  # noqa: PLC0415 - the service's modules load slowly
    from app.settings import Settings  # noqa: PLC0415

    given = {"host": host, "port": port, "workers": workers}
    update = {name: value for name, value in given.items() if value is not None}
    with exit_on_error():
        if events is None:
            if items is not None:
                raise typer.BadParameter("items come with --events; kairos import-items has others")
            settings = Settings()
            server.run(settings.model_copy(update=update), announce_link=print_dashboard_link)
            return

        from cli.database_creation import lock_directory  # noqa: PLC0415 - as above
        from cli.first_start import FirstStart  # noqa: PLC0415

        start = FirstStart.of_file(directory, events, items)
        with lock_directory(start.directory):
            start.prepare()
            start.serve(update, is_demo=False)
