"""The `kairos doctor` command."""

import json
from dataclasses import asdict

import typer
from pydantic import ValidationError

from cli.console import EXIT_FAILURE, format_settings_error
from cli.doctor.check import failure
from cli.options import Json

_COLOURS = {"ok": "green", "warning": "yellow", "failure": "red"}


def doctor_command(as_json: Json = False) -> None:
    """Check settings, database, keys, bundles, events and retraining, without changing anything.

    Warnings and failures come with a remedy. Exits with 1 after a failure.
    """
    from app.settings import (  # noqa: PLC0415 - the service's modules load slowly
        Settings,
        SettingsError,
    )
    from cli.doctor.run import run_checks  # noqa: PLC0415

    try:
        settings = Settings()
    except (ValidationError, SettingsError) as error:
        remedy = "correct the environment; docs/operations.md lists every variable"
        finding = str(error) if isinstance(error, SettingsError) else format_settings_error(error)
        checks = [failure("settings", finding, remedy)]
    else:
        checks = [*run_checks(settings)]
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
