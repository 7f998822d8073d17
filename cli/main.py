"""The `kairos` command: registers every subcommand."""

import typer
from typer.core import TyperGroup

from cli.audit import audit_command
from cli.backup import backup_command
from cli.bench.command import bench_app
from cli.dashboard import dashboard_command
from cli.demo import demo_command
from cli.doctor.command import doctor_command
from cli.erase_user import erase_user_command
from cli.evaluate import evaluate_command
from cli.export_events import export_events_command
from cli.import_events import import_events_command
from cli.import_items import import_items_command
from cli.inspect import inspect_command
from cli.keys import keys_app
from cli.migrate import migrate_command
from cli.models import models_app
from cli.openapi import openapi_command
from cli.publish import publish_command
from cli.recommend import recommend_command
from cli.restore import restore_command
from cli.retrain import retrain_command
from cli.serve import serve_command
from cli.train import train_command


class _Commands(TyperGroup):
    """Refuses arguments that cannot be printed or stored, before any command reads them."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        for argument in args:
            try:
                argument.encode()
            except UnicodeEncodeError as error:
                raise typer.BadParameter(
                    f"an argument is text in UTF-8, but got {argument!a}; correct it", ctx
                ) from error
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_Commands,
    name="kairos",
    help="A time-aware sequential recommender: train it, serve it, see what it attends to.",
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
)
app.command("demo")(demo_command)
app.command("import-events")(import_events_command)
app.command("import-items")(import_items_command)
app.command("export-events")(export_events_command)
app.command("erase-user")(erase_user_command)
app.command("inspect")(inspect_command)
app.command("train")(train_command)
app.command("retrain")(retrain_command)
app.command("evaluate")(evaluate_command)
app.command("publish")(publish_command)
app.command("recommend")(recommend_command)
app.command("serve")(serve_command)
app.command("dashboard")(dashboard_command)
app.command("migrate")(migrate_command)
app.command("doctor")(doctor_command)
app.command("audit")(audit_command)
app.command("backup")(backup_command)
app.command("restore")(restore_command)
app.command("openapi")(openapi_command)
app.add_typer(models_app, name="models")
app.add_typer(keys_app, name="keys")
app.add_typer(bench_app, name="bench")
