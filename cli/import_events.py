"""The `kairos import-events` command."""

import typer

from cli.activation import get_current_actor
from cli.console import exit_on_error
from cli.options import Database, InputFile, resolve_database_url
from cli.progress import show_row_progress


def import_events_command(file: InputFile, database: Database = None) -> None:
    """Import a file of events into the service's database.

    A second import of the same file adds nothing, nor does an export of the same events.
    """
    from app.audit.recording import record_act  # noqa: PLC0415
    from app.imports import import_events  # noqa: PLC0415 - the service's modules load slowly
    from migrations.run import upgrade  # noqa: PLC0415
    from training.data.sources import read_stored_events  # noqa: PLC0415

    with exit_on_error():
        url = resolve_database_url(database)
        upgrade(url)
        events = read_stored_events(file)
        record_act(url, "import_events", actor=get_current_actor(), rows=len(events))
        with show_row_progress("events", len(events)) as advance:
            imported = import_events(url, events, on_chunk=advance)
        erased = f", {imported.erased} of erased users left out" if imported.erased else ""
        typer.echo(f"{imported.stored} events stored, {imported.known} duplicates{erased}")
