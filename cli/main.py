"""The `kairos` command: lists every subcommand, and imports one when it is called."""

from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_command, get_group

COMMANDS = (
    (
        "demo",
        "cli.demo:demo_command",
        "Serve the demo within seconds, and train its model meanwhile.",
    ),
    (
        "import-events",
        "cli.import_events:import_events_command",
        "Import a file of events into the service's database.",
    ),
    (
        "import-items",
        "cli.import_items:import_items_command",
        "Import a file of items, with titles and categories, into the service's database.",
    ),
    (
        "export-events",
        "cli.export_events:export_events_command",
        "Export the service's events into a file that train and import-events read.",
    ),
    (
        "erase-user",
        "cli.erase_user:erase_user_command",
        "Erase users: all events and recommendation records; later trainings leave the users out.",
    ),
    (
        "inspect",
        "cli.inspect:inspect_command",
        "Describe events, and recommend a recipe with a reason for every setting.",
    ),
    (
        "prepare",
        "cli.prepare:prepare_command",
        "Lay out events by user in shards, for more of them than fit into memory.",
    ),
    (
        "train",
        "cli.train:train_command",
        "Fit a recipe on events, evaluate it, and write a bundle.",
    ),
    (
        "retrain",
        "cli.retrain:retrain_command",
        "Train a challenger, and activate it if it passes the gate.",
    ),
    (
        "evaluate",
        "cli.evaluate:evaluate_command",
        "Evaluate a bundle and the reference rankers on the test questions of a recipe.",
    ),
    (
        "publish",
        "cli.publish:publish_command",
        "Copy a bundle into the store and activate it; running services load it.",
    ),
    (
        "recommend",
        "cli.recommend:recommend_command",
        "Recommend items to every user of an event log at one query time, into a Parquet file.",
    ),
    (
        "serve",
        "cli.serve:serve_command",
        "Run the service. docs/operations.md lists its settings, the KAIROS_* variables.",
    ),
    (
        "dashboard",
        "cli.dashboard:dashboard_command",
        "Print a link to the dashboard of every service that this user runs on this machine.",
    ),
    (
        "migrate",
        "cli.migrate:migrate_command",
        "Migrate the database schema to the newest revision.",
    ),
    (
        "partition-events",
        "cli.partition_events:partition_events_command",
        "Move the events of a PostgreSQL database into partitions by month.",
    ),
    (
        "prune-events",
        "cli.prune_events:prune_events_command",
        "Drop all events but those of the last months, for good.",
    ),
    (
        "doctor",
        "cli.doctor.command:doctor_command",
        "Check settings, database, keys, bundles, events, clocks and retraining; change nothing.",
    ),
    (
        "audit",
        "cli.audit:audit_command",
        "Show who erased, exported, listed, imported or changed what, newest first.",
    ),
    (
        "backup",
        "cli.backup:backup_command",
        "Copy the database and the store into a new directory, while the service runs.",
    ),
    (
        "restore",
        "cli.restore:restore_command",
        "Verify a backup and restore it; neither the database nor the store may exist yet.",
    ),
    ("openapi", "cli.openapi:openapi_command", "Print the service's OpenAPI description."),
    ("models", "cli.models:models_app", "Published models: list, show, activate, roll back, sign."),
    ("keys", "cli.keys:keys_app", "API keys: create, list, revoke."),
    ("bench", "cli.bench.command:bench_app", "Run benchmarks."),
)
"""Name, object and summary of each subcommand.

A summary is the first paragraph of its help: `kairos --help` prints them without importing the
subcommands, which would take seconds.
"""


class _Commands(TyperGroup):
    """Imports a subcommand when it is called.

    Refuses arguments that cannot be printed or stored, before any command reads them.
    """

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        for argument in args:
            try:
                argument.encode()
            except UnicodeEncodeError as error:
                raise typer.BadParameter(
                    f"an argument is text in UTF-8, but got {argument!a}; correct it", ctx
                ) from error
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: typer.Context, args: list[str]) -> Any:  # type: ignore[override]
        name, command, rest = super().resolve_command(ctx, args)
        return name, command and import_command(command.name), rest


app = typer.Typer(
    cls=_Commands,
    name="kairos",
    help="A time-aware sequential recommender: train it, serve it, see what it attends to.",
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
    # Importing Rich takes as long as all else of `kairos --help`. Subcommands import far more, and
    # print their help with it.
    rich_markup_mode=None,
)


def import_command(name: str | None) -> Any:
    """Import a subcommand or a group of them, as Typer runs it."""
    (path,) = (path for listed, path, _ in COMMANDS if listed == name)
    module, attribute = path.split(":")
    found = getattr(import_module(module), attribute)
    if isinstance(found, typer.Typer):
        group = get_group(found)
        group.name = name
        return group
    alone = typer.Typer(add_completion=False)
    alone.command(name)(found)
    return get_command(alone)


def _stand_in() -> None:
    """Stand for a subcommand in the list of all."""


for _name, _, _summary in COMMANDS:
    app.command(_name, help=_summary, short_help=_summary)(_stand_in)


if __name__ == "__main__":  # as torchrun starts it: torchrun -m cli.main train ...
    app()
