"""Commands that copy everything the service keeps, and put it back."""

from pathlib import Path
from typing import Annotated

import typer

from cli.console import console, reporting_errors
from cli.models import Store
from cli.online import Database, database_url_of


def backup_command(
    directory: Annotated[Path, typer.Argument(help="A directory that does not exist yet.")],
    store: Store = Path("var/bundles"),
    database: Database = None,
) -> None:
    """Copy the database and the store, while they are in use, into a new directory."""
    from app.backups.copying import take_backup  # noqa: PLC0415 - the service's parts load slowly

    with reporting_errors():
        record = take_backup(database or database_url_of(), store, directory)
        console.print(
            f"{record.rows['events']} events, {record.rows['items']} items, current version "
            f"{record.current or 'none'}",
            highlight=False,
            soft_wrap=True,
        )
        typer.echo(directory)


def restore_command(
    directory: Annotated[Path, typer.Argument(help="What kairos backup wrote.")],
    store: Store = Path("var/bundles"),
    database: Database = None,
) -> None:
    """Verify a backup and put it back, where neither a database nor a store is yet."""
    from app.backups.copying import restore_backup  # noqa: PLC0415 - as above

    with reporting_errors():
        record = restore_backup(directory, database or database_url_of(), store)
        typer.echo(f"{record.rows['events']} events, {record.rows['items']} items restored")
