"""The `kairos demo` command."""

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.console import exit_on_error, print_message
from cli.database_creation import DATABASE_NAME, create_beside, lock_directory

if TYPE_CHECKING:
    from cli.first_start import FirstStart

DEMO = Path(__file__).parent.parent / "demo"


def demo_command(
    directory: Annotated[
        Path, typer.Option(help="Directory for database, bundles and runs.")
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
    serve: Annotated[
        bool, typer.Option(help="Run the service; without it, train and exit.")
    ] = True,
) -> None:
    """Serve the demo within seconds, and train its model meanwhile.

    The first start imports the events and serves a model that only counts them. The recipe is
    trained in the background; the service then changes to its model by itself. Ctrl-C stops both,
    and the next start resumes the training. Once it is done, a start serves at once.
    """
    with exit_on_error(), ExitStack() as stack:
        stack.enter_context(lock_directory(directory))
        database_file = directory / DATABASE_NAME
        creation = None
        if not database_file.exists():
            creation = stack.enter_context(create_beside(database_file, str(events), str(items)))
        # After it began: these imports take seconds.
        from cli.first_start import FirstStart  # noqa: PLC0415
        from training.config import RunConfig  # noqa: PLC0415
        from training.data.sources import read_events, read_items  # noqa: PLC0415

        start = FirstStart(
            directory=directory,
            events_file=str(events),
            items_file=str(items),
            events=read_events(events),
            items=read_items(items),
            config=RunConfig.read(recipe),
            recipe=Path(recipe).stem,
        )
        start.prepare(creation)
        if not serve:
            start.train()
            return
        start.serve({"port": port}, is_demo=_holds_the_demo(start, events))


def _holds_the_demo(start: "FirstStart", events: Path) -> bool:
    """Return whether the database holds the events of the shipped demo, and no others."""
    from app.imports import count_events  # noqa: PLC0415 - the service's modules load slowly

    stored = count_events(start.database_url)
    if stored != len(start.events):
        print_message(
            f"[yellow]not the demo alone[/] {start.database_file} holds {stored:,} events, "
            f"the file {len(start.events):,}: requests need a token or a key; delete "
            f"{start.directory} to start anew"
        )
    return stored == len(start.events) and events.resolve() == (DEMO / "events.parquet").resolve()
