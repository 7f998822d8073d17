"""The `kairos doctor` command."""

import json
from dataclasses import asdict
from typing import Annotated

import typer
from pydantic import ValidationError
from rich.markup import escape

from cli.console import EXIT_FAILURE, console
from cli.doctor.check import failure
from cli.options import Json

_COLOURS = {"ok": "green", "warning": "yellow", "failure": "red"}


def doctor_command(
    as_json: Json = False,
    full: Annotated[
        bool,
        typer.Option("--full", help="Check the whole database, however long it takes."),
    ] = False,
) -> None:
    """Check settings, database, keys, bundles, events, clocks and retraining; change nothing.

    Reads the database for up to a minute. Warnings and failures come with a remedy. Exits with 1
    after a failure.
    """
    from app.settings import (  # noqa: PLC0415 - the service's modules load slowly
        Settings,
        SettingsError,
        format_settings_error,
    )
    from cli.doctor.integrity import DEFAULT_SECONDS  # noqa: PLC0415
    from cli.doctor.run import run_checks  # noqa: PLC0415

    try:
        settings = Settings()
    except (ValidationError, SettingsError) as error:
        remedy = "correct the environment; docs/operations.md lists every variable"
        finding = format_settings_error(error) if isinstance(error, ValidationError) else str(error)
        checks = [failure("settings", finding, remedy)]
    else:
        checks = []
        with console.status("checking the settings") as status:
            for check in run_checks(settings, None if full else DEFAULT_SECONDS):
                checks.append(check)
                status.update(f"checked {escape(check.name)}")
    verdicts = [check.verdict for check in checks]
    if as_json:
        is_ok = "failure" not in verdicts
        report = {"ok": is_ok, "checks": [asdict(check) for check in checks]}
        typer.echo(json.dumps(report, indent=1, ensure_ascii=False))
    else:
        for check in checks:
            verdict = typer.style(f"{check.verdict:8}", fg=_COLOURS[check.verdict], bold=True)
            typer.echo(f"{verdict}{check.name}: {check.finding}")
            if check.remedy is not None:
                typer.echo(f"{'':8}{check.remedy}")
        typer.echo(f"{verdicts.count('failure')} failures, {verdicts.count('warning')} warnings")
    if "failure" in verdicts:
        raise typer.Exit(EXIT_FAILURE)
