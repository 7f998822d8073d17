"""The `kairos audit` command."""

import json
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from cli.console import exit_on_error, print_table
from cli.options import Database, Json, resolve_database_url


def audit_command(
    limit: Annotated[int, typer.Option(help="Most entries to show.", min=1, max=100_000)] = 50,
    as_json: Json = False,
    database: Database = None,
) -> None:
    """Show who erased, exported, listed, imported or changed what, newest first."""
    from app.audit.repository import AuditReader  # noqa: PLC0415 - the service loads slowly
    from app.audit.service import to_response  # noqa: PLC0415
    from app.db.database import Database as Connections  # noqa: PLC0415
    from migrations.run import require_upgraded  # noqa: PLC0415

    with exit_on_error():
        url = resolve_database_url(database)
        require_upgraded(url)
        connections = Connections(url, threads=1, queue=0)
        try:
            found = connections.read_blocking(
                lambda session: AuditReader(session).list_page(before=None, limit=limit)
            )
        finally:
            connections.close()
    entries = [to_response(entry) for entry in found]
    if as_json:
        rows = [
            {"at": entry.at, "actor": entry.actor, "act": entry.act, "detail": entry.detail}
            for entry in entries
        ]
        typer.echo(json.dumps(rows, indent=1))
        return
    table = Table()
    for column in ("at", "actor", "act", "detail"):
        table.add_column(column, overflow="fold")
    for entry in entries:
        detail = ", ".join(f"{name} {value}" for name, value in entry.detail.items())
        table.add_row(entry.at, escape(entry.actor), entry.act, escape(detail))
    print_table(table)
