"""The `kairos dashboard` command."""

import typer

from cli.console import exit_on_error
from model.errors import KairosError


def dashboard_command() -> None:
    """Print a link to the dashboard of every service that this user runs on this machine.

    The link holds the local token of the service, which admits to everything there until the
    service ends or the first key is created.
    """
    from app.auth.local_token import (  # noqa: PLC0415 - the service's modules load slowly
        list_running_services,
        resolve_runtime_directory,
    )
    from app.settings import Settings  # noqa: PLC0415

    with exit_on_error():
        directory = resolve_runtime_directory(Settings().runtime_directory)
        services = list_running_services(directory)
        if not services:
            raise KairosError(
                f"a running service of this user has a file in {directory}, but none does; run "
                "kairos serve, or set KAIROS_RUNTIME_DIRECTORY as the service has it"
            )
        for service in services:
            typer.echo(service.dashboard_link)
