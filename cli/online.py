"""Commands around the service: serve, migrate, import, describe."""

import sys
from typing import Annotated

import typer

from cli.console import counting, reporting_errors

File = Annotated[
    str,
    typer.Argument(help="A Parquet, CSV, TSV or JSONL file, or a directory or glob of them."),
]
Database = Annotated[
    str | None, typer.Option(help="Database URL; by default the setting KAIROS_DATABASE_URL.")
]


def serve_command(
    host: Annotated[str | None, typer.Option(help="Instead of KAIROS_HOST.")] = None,
    port: Annotated[int | None, typer.Option(help="Instead of KAIROS_PORT.")] = None,
) -> None:
    """Run the service. Its settings are KAIROS_* variables; docs/operations.md lists them."""
    from app import server  # noqa: PLC0415 - before torch, so that threads can still be bounded
    from app.settings import Settings  # noqa: PLC0415

    with reporting_errors():
        settings = Settings()
        given = {"host": host, "port": port}
        update = {name: value for name, value in given.items() if value is not None}
        server.run(settings.model_copy(update=update))


def migrate_command(database: Database = None) -> None:
    """Bring the database schema up to date."""
    from migrations.run import upgrade  # noqa: PLC0415 - Alembic takes a while to import

    with reporting_errors():
        upgrade(database or database_url_of())


def import_events_command(file: File, database: Database = None) -> None:
    """Store a file of events in the service's database. Importing it again adds nothing."""
    from app.imports import import_events  # noqa: PLC0415 - the service's parts load slowly
    from migrations.run import upgrade  # noqa: PLC0415
    from training.data.sources import read_events  # noqa: PLC0415

    with reporting_errors():
        url = database or database_url_of()
        upgrade(url)
        events = read_events(file)
        with counting("events", len(events)) as count:
            imported = import_events(url, events, on_chunk=count)
        erased = f", {imported.erased} of erased users left out" if imported.erased else ""
        typer.echo(f"{imported.stored} events stored, {imported.known} known already{erased}")


def import_items_command(file: File, database: Database = None) -> None:
    """Store a file of items, with titles and categories, in the service's database."""
    from app.imports import import_items  # noqa: PLC0415 - the service's parts load slowly
    from migrations.run import upgrade  # noqa: PLC0415
    from training.data.sources import read_items  # noqa: PLC0415

    with reporting_errors():
        url = database or database_url_of()
        upgrade(url)
        items = read_items(file)
        with counting("items", len(items)) as count:
            stored = import_items(url, items, on_chunk=count)
        typer.echo(f"{stored} items stored")


def openapi_command() -> None:
    """Print the service's OpenAPI description."""
    from app.openapi import print_snapshot  # noqa: PLC0415 - builds a whole application

    print_snapshot(sys.stdout.buffer)


def database_url_of() -> str:
    """The database that the settings name."""
    from app.settings import Settings  # noqa: PLC0415

    return Settings().database_url
