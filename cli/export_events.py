"""The `kairos export-events` command."""

from pathlib import Path
from typing import Annotated

import typer

from cli.activation import get_current_actor
from cli.console import exit_on_error, print_message
from cli.options import Database, parse_instant, resolve_database_url
from cli.progress import show_row_progress


def export_events_command(
    output: Annotated[Path, typer.Option(help="The file to write: .parquet or .csv.")],
    database: Database = None,
    until: Annotated[
        str | None,
        typer.Option(help="Leave out events after this RFC 3339 instant with an offset."),
    ] = None,
) -> None:
    """Export the service's events into a file that train and import-events read.

    One row per event, in order of arrival, with all that is stored of it: importing the file adds
    no event twice. Erased users are left out. The file is written completely, or not at all.
    """
    from app.audit.recording import record_act  # noqa: PLC0415
    from app.imports import count_events  # noqa: PLC0415 - the service's modules load slowly
    from migrations.run import require_upgraded  # noqa: PLC0415
    from training.data.event_file import write_events  # noqa: PLC0415

    with exit_on_error():
        url = resolve_database_url(database)
        latest = None if until is None else parse_instant("--until", until)
        require_upgraded(url)
        record_act(url, "export_events", actor=get_current_actor(), until=until)
        with show_row_progress("events", count_events(url)) as advance:
            written = write_events(url, output, latest, on_chunk=advance)
        print_message(f"{written} events")
        typer.echo(output)
