"""The `kairos partition-events` command."""

from typing import Annotated

import typer

from cli.console import exit_on_error, print_message
from cli.options import Database, resolve_database_url


def partition_events_command(
    yes: Annotated[bool, typer.Option("--yes", help="Skip the confirmation.")] = False,
    database: Database = None,
) -> None:
    """Move the events of a PostgreSQL database into partitions by month.

    Once: afterwards the service creates the partitions of the coming months, and kairos
    prune-events drops old ones. Requests that need events wait or get status 503 meanwhile, and
    replicas of an earlier release cannot store events afterwards. A repetition does no harm.
    """
    from app.db.partitions import (  # noqa: PLC0415 - slow
        are_partitioned,
        extend_partitions,
        partition_events,
    )
    from migrations.run import require_upgraded  # noqa: PLC0415

    with exit_on_error():
        url = resolve_database_url(database)
        require_upgraded(url)
        if are_partitioned(url):
            extend_partitions(url)
            print_message("0 events moved, since they are in partitions already")
            return
        if not yes:
            typer.confirm("Does every replica run this release?", abort=True)
        events = partition_events(url)
        extend_partitions(url)
        print_message(f"{events} events moved")
