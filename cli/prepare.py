"""The `kairos prepare` command."""

from typing import Annotated

import typer

from cli.console import exit_on_error, print_message
from cli.options import Engine, Workers
from cli.progress import show_stages
from training.engines import open_engine
from training.preparation.prepare import MOST_SHARDS, prepare


def prepare_command(
    source: Annotated[
        str,
        typer.Argument(
            help="A Parquet, CSV, TSV or JSONL file, a directory or glob of them, on this machine "
            "or at a URL such as s3://bucket/events; or the service's database URL."
        ),
    ],
    directory: Annotated[
        str, typer.Argument(help="A new directory, or a URL, for the prepared events.")
    ],
    engine: Engine = "local",
    workers: Workers = 1,
    shards: Annotated[
        int | None,
        typer.Option(
            help="Parts that users are divided into; by default one per million events.",
            min=1,
            max=MOST_SHARDS,
        ),
    ] = None,
) -> None:
    """Lay out events by user in shards, for more of them than fit into memory.

    The shards are the events of kairos train, and of kairos recommend with --engine.

    Run the same command again to go on after an interruption, or to add events that came since.
    """
    with exit_on_error():
        with open_engine(engine, workers) as mapper, show_stages() as on_task:
            manifest = prepare(source, directory, mapper, shards=shards, on_task=on_task)
        print_message(
            f"{manifest.events:,} events, {manifest.users:,} users, {manifest.items:,} items in "
            f"{len(manifest.shards)} shards"
        )
        typer.echo(directory)
