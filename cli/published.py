"""Publishing a bundle."""

from pathlib import Path
from typing import Annotated

import typer

from cli.console import reporting_errors
from cli.models import Reason, Store, make_current
from cli.online import Database
from model.bundle.manifest import MANIFEST
from model.errors import BundleError
from model.store.store import BundleStore


def publish_command(
    bundle: Annotated[Path, typer.Argument(help="A bundle, or the output directory of train.")],
    store: Store = Path("var/bundles"),
    activate: Annotated[bool, typer.Option(help="Make it the current version.")] = True,
    reason: Reason = None,
    database: Database = None,
) -> None:
    """Take a bundle into the store; a running service picks it up."""
    with reporting_errors():
        published = BundleStore(store)
        version = published.add_copy(newest_bundle(bundle), activate=False)
        if activate:
            make_current(published, version, change="publish", reason=reason, database=database)
        typer.echo(version)


def newest_bundle(place: Path) -> Path:
    """A bundle's own directory, or the newest bundle in the output directory of a run.

    Raises:
        BundleError: if there is none.
    """
    if (place / MANIFEST).is_file():
        return place
    # A hidden one is what a killed run left half written.
    bundles = sorted(path.parent for path in place.glob(f"[!.]*/{MANIFEST}"))
    if not bundles:
        raise BundleError(
            f"what is given must be a bundle or hold one, but {place} does neither; "
            "run kairos train first, or check the path"
        )
    return bundles[-1]
