"""The `kairos backup` command."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from cli.activation import get_current_actor
from cli.console import EXIT_INCOMPLETE, exit_on_error, print_message
from cli.options import (
    DEFAULT_STORE,
    Database,
    Store,
    require_local_store,
    resolve_database_url,
)


def backup_command(
    directory: Annotated[Path, typer.Argument(help="The directory to create.")],
    store: Store = DEFAULT_STORE,
    database: Database = None,
) -> None:
    """Copy the database and the store into a new directory, while the service runs.

    Exits with 3 if a version of the store was damaged and left out.
    """
    from app.audit.recording import record_act  # noqa: PLC0415
    from app.backups.copying import take_backup  # noqa: PLC0415 - the service's modules load slowly
    from migrations.run import require_upgraded  # noqa: PLC0415

    with exit_on_error():
        url = resolve_database_url(database)
        require_upgraded(url)
        record_act(url, "backup", actor=get_current_actor())
        record = take_backup(url, require_local_store(store), directory)
        print_message(
            f"{record.rows['events']} events, {record.rows['items']} items, current version "
            f"{record.current or 'none'}"
        )
        typer.echo(directory)
        report_left_out(record.left_out)


def report_left_out(left_out: Mapping[str, str]) -> None:
    """Print what is missing in a backup or after a restore; exit if anything is."""
    for name, reason in left_out.items():
        print_message(f"[bold yellow]warning[/] left out {escape(name)}: {escape(reason)}")
    if left_out:
        raise typer.Exit(EXIT_INCOMPLETE)
