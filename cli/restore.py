"""The `kairos restore` command."""

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from cli.activation import get_current_actor
from cli.console import exit_on_error, print_message
from cli.options import DEFAULT_STORE, Database, Store, resolve_database_url
from model.errors import OutdatedBundleError
from model.store.store import BundleStore


def restore_command(
    directory: Annotated[Path, typer.Argument(help="A directory written by kairos backup.")],
    store: Store = DEFAULT_STORE,
    database: Database = None,
) -> None:
    """Verify a backup and restore it; neither the database nor the store may exist yet."""
    from app.audit.recording import record_act  # noqa: PLC0415
    from app.backups.copying import restore_backup  # noqa: PLC0415 - the service loads slowly
    from migrations.run import get_head, read_revision  # noqa: PLC0415

    with exit_on_error():
        url = resolve_database_url(database)
        record = restore_backup(directory, url, store)
        if read_revision(url) == get_head():
            record_act(url, "restore", actor=get_current_actor(), taken_at=record.taken_at)
        typer.echo(f"{record.rows['events']} events, {record.rows['items']} items restored")
        bundles = BundleStore(store)
        if (current := bundles.read_current()) is not None:
            try:
                bundles.read_manifest(current)
            except OutdatedBundleError as error:
                print_message(f"[yellow]warning[/] {escape(str(error))}")
