"""The `kairos restore` command."""

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from cli.console import exit_on_error, print_message
from cli.options import DEFAULT_STORE, Database, Store, open_store, resolve_database_url
from model.errors import OutdatedBundleError


def restore_command(
    directory: Annotated[Path, typer.Argument(help="A directory written by kairos backup.")],
    store: Store = DEFAULT_STORE,
    database: Database = None,
) -> None:
    """Verify a backup and restore it; neither the database nor the store may exist yet."""
    from app.backups.copying import restore_backup  # noqa: PLC0415 - the service loads slowly

    with exit_on_error():
        record = restore_backup(directory, resolve_database_url(database), store)
        typer.echo(f"{record.rows['events']} events, {record.rows['items']} items restored")
        bundles = open_store(store)
        if (current := bundles.read_current()) is not None:
            try:
                bundles.read_manifest(current)
            except OutdatedBundleError as error:
                print_message(f"[yellow]warning[/] {escape(str(error))}")
