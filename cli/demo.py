"""One command from nothing to a served model, on the data that ships with Kairos."""

import os
from pathlib import Path
from typing import Annotated

import typer

from cli.console import console, counting, print_report, reporting_errors

DEMO = Path(__file__).parent.parent / "demo"


def demo_command(
    directory: Annotated[Path, typer.Option(help="Where database, run and bundles go.")] = Path(
        "var"
    ),
    events: Annotated[
        Path, typer.Option(help="The events to load.", show_default="demo/events.parquet")
    ] = DEMO / "events.parquet",
    items: Annotated[
        Path,
        typer.Option(help="Their items' titles and categories.", show_default="demo/items.parquet"),
    ] = DEMO / "items.parquet",
    recipe: Annotated[str, typer.Option(help="What to train: as in kairos train.")] = "demo",
    port: Annotated[int, typer.Option(help="Where to serve.", envvar="KAIROS_PORT")] = 8000,
    serve: Annotated[bool, typer.Option(help="Serve once everything is there.")] = True,
) -> None:
    """Load the demo events, train, publish, and serve with the dashboard.

    A step is skipped where its result is there already; an interrupted training goes on.
    """
    from cli.models import make_current  # noqa: PLC0415
    from cli.offline import run_training  # noqa: PLC0415 - torch loads slowly
    from cli.published import newest_bundle  # noqa: PLC0415
    from model.store.store import BundleStore  # noqa: PLC0415
    from training.config import RunConfig  # noqa: PLC0415

    with reporting_errors():
        database_url = f"sqlite:///{(directory / 'kairos.db').resolve()}"
        store = BundleStore(directory / "bundles")
        _fill(database_url, events, items)
        if store.current() is None:
            threads = min(os.cpu_count() or 1, 2)
            console.print(f"[bold]train[/] recipe {recipe}, threads {threads}", highlight=False)
            outcome = run_training(
                RunConfig.read(recipe),
                str(events),
                str(items),
                directory / "run",
                threads=threads,
            )
            print_report(outcome.report)
            version = store.add_copy(newest_bundle(directory / "run"), activate=False)
            make_current(store, version, change="publish", database=database_url)
        console.print(f"[bold]current bundle[/] {store.current()}", highlight=False)
    if serve:
        from app import server  # noqa: PLC0415
        from app.settings import Settings  # noqa: PLC0415

        console.print(f"[bold]dashboard[/] http://127.0.0.1:{port}/dashboard", highlight=False)
        server.run(
            Settings(database_url=database_url, bundle_store=store.root.resolve(), port=port)
        )


def _fill(database_url: str, events: Path, items: Path) -> None:
    from app.imports import count_events, import_events, import_items  # noqa: PLC0415
    from migrations.run import upgrade  # noqa: PLC0415
    from training.data.sources import read_events, read_items  # noqa: PLC0415

    upgrade(database_url)
    table = read_events(events)
    if count_events(database_url) >= len(table):
        return
    import_items(database_url, read_items(items))
    with counting("import events", len(table)) as count:
        import_events(database_url, table, on_chunk=count)
