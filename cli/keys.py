"""The `kairos keys` commands: create, list, revoke."""

import json
import re
from typing import Annotated, Any, Literal

import typer
from rich.markup import escape
from rich.table import Table

from cli.activation import get_current_actor
from cli.console import exit_on_error, print_message, print_table
from cli.options import Database, Json, resolve_database_url
from model.clock import MICROSECONDS_PER_DAY
from model.errors import KairosError

keys_app = typer.Typer(help="API keys: create, list, revoke.", no_args_is_help=True)

DEFAULT_EXPIRY = "365d"
NEVER = "never"
_PERIOD = re.compile(r"(\d{1,5})([hdw])", re.ASCII)
_PERIODS = {
    "h": MICROSECONDS_PER_DAY // 24,
    "d": MICROSECONDS_PER_DAY,
    "w": 7 * MICROSECONDS_PER_DAY,
}


@keys_app.command("create")
def create_command(
    name: Annotated[str, typer.Argument(help="The key's owner, as recorded in the audit trail.")],
    role: Annotated[
        Literal["read", "ingest", "admin"],
        typer.Option(
            help="read: recommend and read. ingest: send events and items. admin: everything."
        ),
    ],
    expires: Annotated[
        str,
        typer.Option(help="90d, 12h, 4w, an instant such as 2027-01-31T00:00:00Z, or never."),
    ] = DEFAULT_EXPIRY,
    requests_per_second: Annotated[
        float | None, typer.Option(help="Rate limit of this key; by default the service's.")
    ] = None,
    user_prefix: Annotated[
        str | None,
        typer.Option(help="Reach only users whose ids begin with this, such as acme/."),
    ] = None,
    user_list: Annotated[
        bool, typer.Option("--user-list/--no-user-list", help="Whether a read key may list users.")
    ] = True,
    database: Database = None,
) -> None:
    """Create a key and print it, once only: KEY=$(kairos keys create NAME --role read)."""
    from app.http.types import format_instant  # noqa: PLC0415
    from app.keys.issuing import create_key  # noqa: PLC0415 - the service's modules load slowly

    with exit_on_error():
        url = resolve_database_url(database)
        expires_at = None if expires == NEVER else _parse_expiry(expires, url)
        expiry = (
            "never expires: revoke it once nobody needs it"
            if expires_at is None
            else f"valid until {format_instant(expires_at)}"
        )
        issued = create_key(
            url,
            name,
            role,
            expires_at=expires_at,
            requests_per_second=requests_per_second,
            user_prefix=user_prefix,
            may_list_users=user_list,
            actor=get_current_actor(),
        )
        print_message(
            f"key {issued.key_id} for {escape(name)}, role {role}, {expiry}; it is printed this "
            "once only, and valid within one poll interval"
        )
        if issued.is_first:
            print_message(
                "it is the first key: from now on every request needs one, and links with the "
                "local token no longer admit"
            )
        typer.echo(issued.secret)


@keys_app.command("list")
def list_command(
    as_json: Json = False,
    database: Database = None,
) -> None:
    """List all keys, including expired and revoked ones, oldest first; only digests are stored."""
    from app.db.clock import read_database_time  # noqa: PLC0415
    from app.http.types import format_instant  # noqa: PLC0415
    from app.keys.issuing import list_keys  # noqa: PLC0415 - the service's modules load slowly

    def format_optional(instant: int | None) -> str | None:
        return None if instant is None else format_instant(instant)

    with exit_on_error():
        keys = list_keys(resolve_database_url(database))
        at = read_database_time(resolve_database_url(database))
        rows: list[dict[str, Any]] = [
            {
                "key_id": key.key_id,
                "name": key.name,
                "role": key.role,
                "requests_per_second": key.requests_per_second,
                "created_at": format_optional(key.created_at),
                "expires_at": format_optional(key.expires_at),
                "revoked_at": format_optional(key.revoked_at),
                "user_prefix": key.user_prefix,
                "may_list_users": key.may_list_users,
                "state": key.get_state(at),
            }
            for key in keys
        ]
    if as_json:
        typer.echo(json.dumps(rows, indent=1, ensure_ascii=False))
        return
    table = Table()
    for column in ("id", "name", "role", "users", "created", "expires", "state"):
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(
            *(escape(str(row[field])) for field in ("key_id", "name", "role")),
            escape(_format_reach(row["user_prefix"], may_list_users=row["may_list_users"])),
            *(escape(str(row[field] or NEVER)) for field in ("created_at", "expires_at", "state")),
        )
    print_table(table)


@keys_app.command("revoke")
def revoke_command(
    key_id: Annotated[str, typer.Argument(help="The id that kairos keys list shows.")],
    database: Database = None,
) -> None:
    """Revoke a key permanently; running processes reject it within one poll interval."""
    from app.keys.issuing import revoke_key  # noqa: PLC0415 - the service's modules load slowly

    with exit_on_error():
        was_valid = revoke_key(resolve_database_url(database), key_id, actor=get_current_actor())
        print_message(
            f"key {escape(key_id)} " + ("is revoked" if was_valid else "was revoked already")
        )


def _format_reach(user_prefix: str | None, *, may_list_users: bool) -> str:
    """Format which users a key reaches, and whether it lists them."""
    reach = "all" if user_prefix is None else f"{user_prefix}..."
    return reach if may_list_users else f"{reach}, no list"


def _parse_expiry(text: str, database_url: str) -> int:
    """Parse a period from the database's time, or an instant, as epoch microseconds.

    Raises:
        KairosError: if it is neither.
        DatabaseUnavailableError: if the database does not answer.
    """
    from app.db.clock import read_database_time  # noqa: PLC0415
    from app.http.types import parse_instant  # noqa: PLC0415
    from migrations.run import require_upgraded  # noqa: PLC0415

    period = _PERIOD.fullmatch(text)
    if period is not None:
        require_upgraded(database_url)
        return read_database_time(database_url) + int(period.group(1)) * _PERIODS[period.group(2)]
    try:
        return parse_instant(text)
    except ValueError as error:
        raise KairosError(
            f"a key expires after hours, days or weeks, or at an instant with an offset, but got "
            f"{text[:40]!r} ({error}); write 12h, 90d, 4w, 2027-01-31T00:00:00Z or never"
        ) from error
