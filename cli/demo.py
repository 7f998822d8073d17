"""The `kairos demo` command."""

import os
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from cli.activation import make_current
from cli.console import exit_on_error, print_dashboard_link, print_message, print_report
from cli.options import open_store
from cli.progress import show_row_progress
from cli.train import run_training
from model.errors import OutdatedBundleError
from model.store.store import BundleStore
from training.config import RunConfig
from training.data.sources import read_events, read_items
from training.fitting.checkpoint import CHECKPOINT

DEMO = Path(__file__).parent.parent / "demo"
_MAX_THREADS = 2


def demo_command(
    directory: Annotated[
        Path, typer.Option(help="Directory for database, run and bundles.")
    ] = Path("var"),
    events: Annotated[
        Path, typer.Option(help="The events to import.", show_default="demo/events.parquet")
    ] = DEMO / "events.parquet",
    items: Annotated[
        Path,
        typer.Option(help="Their items' titles and categories.", show_default="demo/items.parquet"),
    ] = DEMO / "items.parquet",
    recipe: Annotated[str, typer.Option(help="The recipe, as for kairos train.")] = "demo",
    port: Annotated[int, typer.Option(help="The port to listen on.", envvar="KAIROS_PORT")] = 8000,
    serve: Annotated[bool, typer.Option(help="Run the service at the end.")] = True,
) -> None:
    """Import the demo events, train, publish, and run the service with the dashboard.

    Steps whose result exists are skipped; an interrupted training is resumed.
    """
    with exit_on_error():
        database_url = f"sqlite:///{(directory / 'kairos.db').resolve()}"
        store = open_store(directory / "bundles")
        is_demo = _fill_database(database_url, events, items)
        is_outdated = _is_outdated(store)
        if is_outdated:
            # The checkpoint of its run has the parameters of that format.
            (directory / "run" / CHECKPOINT).unlink(missing_ok=True)
        if is_outdated or store.read_current() is None:
            threads = min(os.cpu_count() or 1, _MAX_THREADS)
            print_message(f"[bold]train[/] recipe {recipe}, threads {threads}")
            outcome = run_training(
                RunConfig.read(recipe),
                str(events),
                str(items),
                directory / "run",
                threads=threads,
            )
            print_report(outcome.report)
            version = store.add_copy(outcome.bundle, activate=False)
            make_current(store, version, change="publish", database=database_url)
        print_message(f"[bold]current bundle[/] {store.read_current()}")
    if serve:
        from app import server  # noqa: PLC0415 - the service's modules load slowly
        from app.settings import Settings  # noqa: PLC0415

        server.run(
            Settings(database_url=database_url, bundle_store=store.root.resolve(), port=port),
            is_demo=is_demo,
            announce_link=print_dashboard_link,
        )


def _is_outdated(store: BundleStore) -> bool:
    """Return whether the current version has an older bundle format, and print the reason."""
    current = store.read_current()
    if current is None:
        return False
    try:
        store.read_manifest(current)
    except OutdatedBundleError as error:
        print_message(f"[yellow]train again[/] {escape(str(error))}")
        return True
    return False


def _fill_database(database_url: str, events: Path, items: Path) -> bool:
    """Import items and events, unless the database has that many events already.

    Returns whether the database holds the events of the shipped demo, and no others.
    """
    from app.imports import count_events, import_events, import_items  # noqa: PLC0415
    from migrations.run import upgrade  # noqa: PLC0415

    upgrade(database_url)
    table = read_events(events)
    if count_events(database_url) < len(table):
        import_items(database_url, read_items(items))
        with show_row_progress("import events", len(table)) as advance:
            import_events(database_url, table, on_chunk=advance)
    is_shipped = events.resolve() == (DEMO / "events.parquet").resolve()
    return is_shipped and count_events(database_url) == len(table)
