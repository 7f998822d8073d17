"""The `kairos erase-user` command."""

import asyncio
import sys
from contextlib import redirect_stdout
from typing import Annotated

import typer
from pydantic import TypeAdapter, ValidationError

from cli.console import exit_on_error
from cli.options import Database, resolve_database_url
from model.errors import KairosError


def erase_user_command(
    user_id: Annotated[
        str,
        typer.Argument(
            help="The user; - reads the id from standard input, so that it does not appear in the "
            "process list."
        ),
    ],
    yes: Annotated[bool, typer.Option("--yes", help="Skip the confirmation.")] = False,
    database: Database = None,
) -> None:
    """Erase a user: all events and recommendation records; later trainings leave the user out.

    Later imports and requests with the erased events are rejected. A repetition is safe.
    """
    from app.db.database import Database as Connections  # noqa: PLC0415
    from app.users.service import erase_user_data  # noqa: PLC0415
    from migrations.run import require_upgraded  # noqa: PLC0415

    with exit_on_error():
        url = resolve_database_url(database)
        is_piped = user_id == "-"
        erased_id = _validate_user_id(sys.stdin.readline().rstrip("\r\n") if is_piped else user_id)
        if is_piped and not yes:
            raise KairosError(
                "a confirmation reads standard input, but the id came from there; add --yes"
            )
        if not yes:
            typer.confirm("Erase this user permanently?", abort=True)
        require_upgraded(url)
        connections = Connections(url, threads=1, queue=0)
        try:
            # The audit event is logged to standard output, which is for the result here.
            with redirect_stdout(sys.stderr):
                erased = asyncio.run(erase_user_data(connections, erased_id, actor="command line"))
        finally:
            connections.close()
        typer.echo(
            f"{erased.deleted_events} events and {erased.deleted_recommendations} "
            "recommendations deleted"
        )


def _validate_user_id(user_id: str) -> str:
    from app.http.types import Id  # noqa: PLC0415 - the service's modules load slowly

    try:
        return TypeAdapter(Id).validate_python(user_id)
    except ValidationError as error:
        raise KairosError(
            "a user id is 1 to 256 characters, none of them a control character, but got "
            f"{len(user_id)} characters; give the id that was sent with the events"
        ) from error
