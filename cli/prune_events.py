"""The `kairos prune-events` command."""

from typing import Annotated

import typer
from rich.table import Table

from cli.activation import get_current_actor
from cli.console import exit_on_error, print_message, print_table
from cli.options import Database, resolve_database_url
from model.clock import to_datetime
from model.errors import KairosError

_DAYS_OF_A_MONTH = 28


def prune_events_command(
    keep_months: Annotated[
        int, typer.Option(help="Months whose events stay, this one included.", min=1)
    ],
    dry_run: Annotated[bool, typer.Option(help="Only print what would be dropped.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Skip the confirmation.")] = False,
    database: Database = None,
) -> None:
    """Drop all events but those of the last months, for good.

    For PostgreSQL, once kairos partition-events has been run.
    """
    from app.audit.recording import record_act  # noqa: PLC0415
    from app.db.partitions import prune_events  # noqa: PLC0415 - the service's modules load slowly
    from app.settings import Settings  # noqa: PLC0415
    from migrations.run import require_upgraded  # noqa: PLC0415

    with exit_on_error():
        days = Settings().recommendation_days
        # Or else impressions whose click is known would name events that are gone.
        if (keep_months - 1) * _DAYS_OF_A_MONTH < days:
            raise KairosError(
                f"events stay for longer than impressions, which are kept for {days} days, but got "
                f"--keep-months {keep_months}; name more, or lower KAIROS_RECOMMENDATION_DAYS"
            )
        url = resolve_database_url(database)
        require_upgraded(url)
        planned = prune_events(url, keep_months, is_dry_run=True)
        table = Table("events of", "number")
        for partition, events in planned.partitions.items():
            table.add_row(partition.removeprefix("events_").replace("_", "-"), str(events))
        if planned.others:
            table.add_row("other months", str(planned.others))
        print_table(table)
        before = f"{to_datetime(planned.before):%Y-%m-%d}"
        if dry_run or (not planned.partitions and not planned.others):
            print_message(f"{planned.events} events from before {before}; nothing was dropped")
            return
        if not yes:
            typer.confirm(f"Drop {planned.events} events from before {before}?", abort=True)
        record_act(url, "prune_events", actor=get_current_actor(), before=before)
        pruned = prune_events(url, keep_months)
        print_message(f"{pruned.events} events from before {before} dropped")
