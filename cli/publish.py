"""The `kairos publish` command."""

from pathlib import Path
from typing import Annotated

import typer

from cli.activation import make_current
from cli.console import exit_on_error
from cli.options import DEFAULT_STORE, Database, Reason, Store, open_store
from model.bundle.manifest import MANIFEST
from model.errors import BundleError


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


def find_bundle(path: Path) -> Path:
    """Find a bundle's directory, or the newest bundle in the output directory of a run.

    Raises:
        BundleError: if there is none.
    """
    if (path / MANIFEST).is_file():
        return path
    # A hidden directory is the unfinished bundle of a killed run.
    bundles = sorted(manifest.parent for manifest in path.glob(f"[!.]*/{MANIFEST}"))
    if not bundles:
        raise BundleError(
            f"the path must be a bundle or contain one, but {path} does neither; "
            "run kairos train first, or check the path"
        )
    return bundles[-1]
