"""The `kairos serve` command."""

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
) -> None:
    """Run the service. docs/operations.md lists its settings, the KAIROS_* variables.

    On a terminal it prints a link to the dashboard.
    """
    from app import server  # noqa: PLC0415 - the service's modules load slowly
    from app.settings import Settings  # noqa: PLC0415

    with exit_on_error():
        settings = Settings()
        given = {"host": host, "port": port, "workers": workers}
        update = {name: value for name, value in given.items() if value is not None}
        server.run(settings.model_copy(update=update), announce_link=print_dashboard_link)
