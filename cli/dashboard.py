"""The `kairos dashboard` command."""

import http.client
import urllib.error
import urllib.request
from http import HTTPStatus
from typing import TYPE_CHECKING

import typer

from cli.console import exit_on_error, print_message
from model.errors import KairosError

if TYPE_CHECKING:
    from app.auth.local_token import RunningService


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
            if _refuses_token(service):
                print_message(f"{service.url} has keys: its page prompts for one")
                typer.echo(f"{service.url}/dashboard/")
            else:
                typer.echo(service.dashboard_link)


def _refuses_token(service: "RunningService") -> bool:
    """Return whether a service says that its local token does not admit, as keys exist."""
    request = urllib.request.Request(
        f"{service.url}/v1/caller", headers={"Authorization": f"Bearer {service.token}"}
    )
    try:
        # Not through a proxy: it would learn the token.
        urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=2)
    except urllib.error.HTTPError as error:
        return error.code == HTTPStatus.UNAUTHORIZED
    except (OSError, http.client.HTTPException):
        return False
    return False
