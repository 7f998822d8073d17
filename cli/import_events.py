"""The `kairos import-events` command."""

from pathlib import Path
from typing import Annotated

import polars as pl
import typer
from rich.markup import escape

from cli.activation import get_current_actor
from cli.console import EXIT_INCOMPLETE, exit_on_error, print_message
from cli.options import Database, InputFile, resolve_database_url
from cli.progress import show_row_progress
from model.clock import now, to_datetime
from model.errors import KairosError


def import_events_command(
    file: InputFile,
    database: Database = None,
    left_out: Annotated[
        Path | None,
        typer.Option(
            help="The CSV file for events with implausible times; by default "
            "left-out-TIME.csv in the working directory."
        ),
    ] = None,
) -> None:
    """Import a file of events into the service's database.

    A second import of the same file adds nothing, nor does an export of the same events. Events
    before 1990 or more than 300 seconds ahead of the clock are written to a file, with the reason,
    instead of the database; the command then exits with 3.
    """
    from app.audit.recording import record_act  # noqa: PLC0415
    from app.imports import import_events  # noqa: PLC0415 - the service's modules load slowly
    from migrations.run import upgrade  # noqa: PLC0415
    from training.data.event_file import write_left_out  # noqa: PLC0415
    from training.data.sources import read_stored_events  # noqa: PLC0415

    with exit_on_error():
        url = resolve_database_url(database)
        upgrade(url)
        events = read_stored_events(file)
        record_act(url, "import_events", actor=get_current_actor(), rows=len(events))
        with show_row_progress("events", len(events)) as advance:
            imported = import_events(url, events, on_chunk=advance)
        erased = f", {imported.erased} of erased users left out" if imported.erased else ""
        quarantine = ""
        if not imported.left_out.is_empty():
            quarantine = f", {len(imported.left_out)} with implausible times left out"
        typer.echo(
            f"{imported.stored} events stored, {imported.known} duplicates{erased}{quarantine}"
        )
        if quarantine:
            path = left_out or Path(f"left-out-{to_datetime(now()):%Y%m%dT%H%M%SZ}.csv")
            try:
                write_left_out(imported.left_out, path)
            except OSError as error:
                raise KairosError(
                    f"the events that are left out are written to a file, but {path} cannot be "
                    f"written ({error}); name another with --left-out and import the file again, "
                    "which stores no event twice"
                ) from error
            print_message(f"[yellow]left out[/] {_count_reasons(imported.left_out)}")
            print_message(f"correct them and import the file again: {escape(str(path))}")
            raise typer.Exit(EXIT_INCOMPLETE)


def _count_reasons(left_out: pl.DataFrame) -> str:
    counts = left_out["reason"].value_counts(sort=True)
    return ", ".join(f"{count:,} {reason}" for reason, count in counts.iter_rows())
