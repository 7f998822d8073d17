"""The `kairos publish` command."""

from pathlib import Path
from typing import Annotated

import typer

from cli.activation import make_current
from cli.console import exit_on_error
from cli.options import DEFAULT_STORE, Database, Reason, Store, open_store
from model.bundle.reading import find_bundle


def publish_command(
    bundle: Annotated[Path, typer.Argument(help="A bundle, or the output directory of train.")],
    store: Store = DEFAULT_STORE,
    activate: Annotated[bool, typer.Option(help="Make it the current version.")] = True,
    reason: Reason = None,
    database: Database = None,
) -> None:
    """Copy a bundle into the store and activate it; running services load it."""
    with exit_on_error():
        bundles = open_store(store)
        version = bundles.add_copy(find_bundle(bundle), activate=False)
        if activate:
            make_current(bundles, version, change="publish", reason=reason, database=database)
        typer.echo(version)
