"""Commands around API keys: create, list, revoke."""

import json
import re
from typing import Annotated, Literal

import typer
from rich.markup import escape
from rich.table import Table

from cli.console import console, print_table, reporting_errors
from cli.online import Database, database_url_of
from model.clock import MICROSECONDS_PER_DAY, now
from model.errors import KairosError

keys_app = typer.Typer(help="API keys: create, list, revoke.", no_args_is_help=True)

_PERIOD = re.compile(r"(\d{1,5})([hdw])", re.ASCII)
_PERIODS = {
    "h": MICROSECONDS_PER_DAY // 24,
    "d": MICROSECONDS_PER_DAY,
    "w": 7 * MICROSECONDS_PER_DAY,
}


@keys_app.command("create")
def create_command(
    name: Annotated[str, typer.Argument(help="Whose it is; it stands in the audit trail.")],
    role: Annotated[
        Literal["read", "ingest", "admin"],
        typer.Option(help="read: ask and look. ingest: send events and items. admin: everything."),
    ],
    expires: Annotated[
        str | None,
        typer.Option(help="90d, 12h, 4w, or an instant: 2027-01-31T00:00:00Z. Default: never."),
    ] = None,
    requests_per_second: Annotated[
        float | None, typer.Option(help="A limit of its own, instead of the service's.")
    ] = None,
    database: Database = None,
) -> None:
    """Make a key and print it, this one time: KEY=$(kairos keys create NAME --role read)."""
    from app.keys.issuing import create_key  # noqa: PLC0415 - the service's parts load slowly

    with reporting_errors():
        issued = create_key(
            database or database_url_of(),
            name,
            role,
            expires_at=None if expires is None else _expiry(expires),
            requests_per_second=requests_per_second,
        )
        console.print(
            f"key {issued.key_id} for {escape(name)}, role {role}; it is shown this once only, and "
            "works within a poll interval",
            highlight=False,
            soft_wrap=True,
        )
        typer.echo(issued.secret)


@keys_app.command("list")
def list_command(
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
    database: Database = None,
) -> None:
    """List every key ever made, oldest first. The keys themselves are kept nowhere."""
    from app.http.types import format_instant  # noqa: PLC0415
    from app.keys.issuing import list_keys  # noqa: PLC0415 - the service's parts load slowly

    def told(instant: int | None) -> str | None:
        return None if instant is None else format_instant(instant)

    with reporting_errors():
        at = now()
        rows = [
            {
                "key_id": key.key_id,
                "name": key.name,
                "role": key.role,
                "requests_per_second": key.requests_per_second,
                "created_at": told(key.created_at),
                "expires_at": told(key.expires_at),
                "revoked_at": told(key.revoked_at),
                "state": key.state(at),
            }
            for key in list_keys(database or database_url_of())
        ]
    if as_json:
        typer.echo(json.dumps(rows, indent=1, ensure_ascii=False))
        return
    table = Table()
    for column in ("id", "name", "role", "created", "expires", "state"):
        table.add_column(column, overflow="fold")
    for row in rows:
        shown = ("key_id", "name", "role", "created_at", "expires_at", "state")
        table.add_row(*(escape(str(row[column] or "never")) for column in shown))
    print_table(table)


@keys_app.command("revoke")
def revoke_command(
    key_id: Annotated[str, typer.Argument(help="As kairos keys list shows it.")],
    database: Database = None,
) -> None:
    """Make a key invalid for ever; running processes turn it away within a poll interval."""
    from app.keys.issuing import revoke_key  # noqa: PLC0415 - the service's parts load slowly

    with reporting_errors():
        is_news = revoke_key(database or database_url_of(), key_id)
        console.print(f"key {key_id} " + ("is revoked" if is_news else "was revoked already"))


def _expiry(text: str) -> int:
    """A period from now, or an instant, as epoch microseconds.

    Raises:
        KairosError: if it is neither.
    """
    from app.http.types import parse_instant  # noqa: PLC0415

    period = _PERIOD.fullmatch(text)
    if period is not None:
        return now() + int(period.group(1)) * _PERIODS[period.group(2)]
    try:
        return parse_instant(text)
    except ValueError as error:
        raise KairosError(
            f"a key expires after hours, days or weeks, or at an instant with an offset, but got "
            f"{text[:40]!r} ({error}); write 12h, 90d, 4w or 2027-01-31T00:00:00Z"
        ) from error
