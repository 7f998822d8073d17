"""Commands around what the service has on record: write events to a file, erase a user."""

import asyncio
import sys
from contextlib import redirect_stdout
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer
from pydantic import TypeAdapter, ValidationError

from app.http.types import Id
from cli.console import console, counting, reporting_errors
from cli.online import Database, database_url_of
from model.clock import from_datetime
from model.errors import KairosError


def export_events_command(
    output: Annotated[Path, typer.Option(help="The Parquet file to write.")],
    database: Database = None,
    until: Annotated[
        str | None,
        typer.Option(help="Leave out events after this RFC 3339 instant with an offset."),
    ] = None,
) -> None:
    """Write the service's events into a Parquet file that train and import-events read.

    One row per event, in order of arrival: user_id, item_id, timestamp, action, value. Erased users
    are left out. The file is there whole, or not at all.
    """
    from app.imports import count_events  # noqa: PLC0415 - the service's parts load slowly
    from migrations.run import require_upgraded  # noqa: PLC0415
    from training.data.event_file import write_events  # noqa: PLC0415

    with reporting_errors():
        url = database or database_url_of()
        latest = None if until is None else _instant(until)
        require_upgraded(url)
        with counting("events", count_events(url)) as count:
            written = write_events(url, output, latest, on_chunk=count)
        console.print(f"{written} events", highlight=False)
        typer.echo(output)


def erase_user_command(
    user_id: Annotated[
        str, typer.Argument(help="The user; - reads the id from standard input, out of sight.")
    ],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask whether to go on.")] = False,
    database: Database = None,
) -> None:
    """Erase a user: every event and every record of what was shown, here and in later trainings.

    Copies of the erased events that are sent or imported again are refused. Erasing again is safe.
    """
    from app.db.database import Database as Connections  # noqa: PLC0415
    from app.users.service import erase_user_data  # noqa: PLC0415
    from migrations.run import require_upgraded  # noqa: PLC0415

    with reporting_errors():
        url = database or database_url_of()
        is_piped = user_id == "-"
        named = _checked(sys.stdin.readline().rstrip("\r\n") if is_piped else user_id)
        if is_piped and not yes:
            raise KairosError("an id from standard input leaves nobody to ask; add --yes")
        if not yes:
            typer.confirm("Erase this user for good?", abort=True)
        require_upgraded(url)
        connections = Connections(url, threads=1, queue=0)
        try:
            # The audit line goes where the service's own does, beside the answer.
            with redirect_stdout(sys.stderr):
                erased = asyncio.run(erase_user_data(connections, named, actor="command line"))
        finally:
            connections.close()
        typer.echo(
            f"{erased.deleted_events} events and {erased.deleted_recommendations} "
            "recommendations deleted"
        )


def _checked(user_id: str) -> str:
    try:
        return TypeAdapter(Id).validate_python(user_id)
    except ValidationError as error:
        raise KairosError(
            "a user id is 1 to 256 characters, none of them a control character, but got "
            f"{len(user_id)} characters; give the id as it was sent with the events"
        ) from error


def _instant(text: str) -> int:
    try:
        return from_datetime(datetime.fromisoformat(text))
    except ValueError as error:
        raise KairosError(
            f"an instant is RFC 3339 with an offset, but got {text!r}; "
            "write it like 2011-11-01T09:00:00Z"
        ) from error
