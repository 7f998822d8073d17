"""The `kairos restore` command."""

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from cli.activation import get_current_actor
from cli.backup import report_left_out
from cli.console import exit_on_error, print_message
from cli.options import (
    DEFAULT_STORE,
    Database,
    Store,
    open_store,
    require_local_store,
    resolve_database_url,
    resolve_erasure_log,
)
from model.errors import OutdatedBundleError


def restore_command(
    directory: Annotated[Path, typer.Argument(help="A directory written by kairos backup.")],
    store: Store = DEFAULT_STORE,
    database: Database = None,
    erasures: Annotated[
        Path | None,
        typer.Option(
            help="The log of erasures of the database that the backup was taken from; by default "
            "that of the database to restore."
        ),
    ] = None,
) -> None:
    """Verify a backup and restore it; neither the database nor the store may exist yet.

    Users who were erased since the backup was taken are erased again. Exits with 3 if a damaged
    version was left out.
    """
    from app.audit.recording import record_act  # noqa: PLC0415
    from app.backups.copying import restore_backup  # noqa: PLC0415 - the service loads slowly
    from app.db.erasure_log import ErasureLog  # noqa: PLC0415
    from migrations.run import get_head, read_revision  # noqa: PLC0415

    with exit_on_error():
        url = resolve_database_url(database)
        log = resolve_erasure_log(url) if erasures is None else ErasureLog(erasures)
        record, replay = restore_backup(directory, url, require_local_store(store), log)
        if read_revision(url) == get_head():
            record_act(url, "restore", actor=get_current_actor(), taken_at=record.taken_at)
        else:
            print_message(
                "[yellow]warning[/] the restore is not in the audit: the backup is of another "
                f"revision of the schema than {get_head()}"
            )
        typer.echo(f"{record.rows['events']} events, {record.rows['items']} items restored")
        typer.echo(f"{replay.erasures} erasures replayed: {replay.rows} rows deleted")
        if not log.file.exists():
            print_message(
                f"[yellow]warning[/] {escape(str(log.file))} does not exist; if users were "
                "erased after the backup, name their log with --erasures, or erase them again"
            )
        bundles = open_store(store)
        if (current := bundles.read_current()) is not None and current not in record.left_out:
            try:
                bundles.read_manifest(current)
            except OutdatedBundleError as error:
                print_message(f"[yellow]warning[/] {escape(str(error))}")
        report_left_out(record.left_out)
