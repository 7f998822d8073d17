"""The `kairos import-items` command."""

import typer

from cli.activation import get_current_actor
from cli.console import exit_on_error
from cli.options import Database, InputFile, resolve_database_url
from cli.progress import show_row_progress


def import_items_command(file: InputFile, database: Database = None) -> None:
    """Import a file of items, with titles and categories, into the service's database."""
    from app.audit.recording import record_act  # noqa: PLC0415
    from app.imports import import_items  # noqa: PLC0415 - the service's modules load slowly
    from migrations.run import upgrade  # noqa: PLC0415
    from model.errors import EventSourceError  # noqa: PLC0415
    from training.data.sources import read_items  # noqa: PLC0415

    with exit_on_error():
        url = resolve_database_url(database)
        upgrade(url)
        items = read_items(file)
        record_act(url, "import_items", actor=get_current_actor(), rows=len(items))
        with show_row_progress("items", len(items)) as advance:
            try:
                stored = import_items(url, items, on_chunk=advance)
            except EventSourceError as error:
                raise EventSourceError(f"{file}: {error}") from error
        typer.echo(f"{stored} items stored")
