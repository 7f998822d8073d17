"""The command that looks whether all is well."""

import json
from dataclasses import asdict
from typing import Annotated

import typer
from pydantic import ValidationError

from cli.console import FAILURE, settings_told
from cli.doctor_checks.check import broken

_COLOURS = {"ok": "green", "warning": "yellow", "failure": "red"}


def doctor_command(
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Look at settings, database, keys, bundles, events and retraining; changes nothing.

    Every finding is ok, a warning or a failure, with its remedy. Exits with 1 if anything fails.
    """
    from app.settings import Settings  # noqa: PLC0415 - everything that is looked at loads slowly
    from cli.doctor_checks.examination import examine  # noqa: PLC0415

    try:
        settings = Settings()
    except ValidationError as error:
        remedy = "correct the environment; docs/operations.md lists every variable"
        found = [broken("settings", settings_told(error), remedy)]
    else:
        found = [*examine(settings)]
    verdicts = [check.verdict for check in found]
    if as_json:
        is_well = "failure" not in verdicts
        told = {"ok": is_well, "checks": [asdict(check) for check in found]}
        typer.echo(json.dumps(told, indent=1, ensure_ascii=False))
    else:
        for check in found:
            sign = typer.style(f"{check.verdict:8}", fg=_COLOURS[check.verdict], bold=True)
            typer.echo(f"{sign}{check.name}: {check.told}")
            if check.remedy is not None:
                typer.echo(f"{'':8}{check.remedy}")
        typer.echo(f"{verdicts.count('failure')} failures, {verdicts.count('warning')} warnings")
    if "failure" in verdicts:
        raise typer.Exit(FAILURE)
