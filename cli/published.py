"""Commands around published bundles: publish, activate, list."""

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from cli.console import console, print_table, reporting_errors
from model.bundle.manifest import MANIFEST
from model.bundle.store import BundleStore
from model.clock import to_datetime
from model.errors import BundleError

Store = Annotated[
    Path, typer.Option(help="Directory of published bundles.", envvar="KAIROS_BUNDLE_STORE")
]


def publish_command(
    bundle: Annotated[Path, typer.Argument(help="A bundle, or the output directory of train.")],
    store: Store = Path("var/bundles"),
    activate: Annotated[bool, typer.Option(help="Make it the current version.")] = True,
) -> None:
    """Take a bundle into the store; a running service picks it up."""
    with reporting_errors():
        typer.echo(BundleStore(store).take_in(newest_bundle(bundle), activate=activate))


def models_command(store: Store = Path("var/bundles")) -> None:
    """List the published versions, newest first."""
    with reporting_errors():
        published = BundleStore(store)
        if not published.versions():
            console.print(
                f"nothing is published in {escape(str(store))} yet; kairos publish does",
                highlight=False,
                soft_wrap=True,
            )
            return
        current = published.current()
        table = Table()
        for column in ("version", "current", "items", "ndcg@10", "trained until"):
            table.add_column(column, overflow="fold")
        for version in published.versions():
            manifest = published.manifest(version)
            quality = manifest.metrics.get("ndcg@10")
            table.add_row(
                version,
                "yes" if version == current else "",
                str(manifest.counts.items),
                "" if quality is None else f"{quality:.4f}",
                to_datetime(manifest.data_window.last_at).strftime("%Y-%m-%d %H:%M UTC"),
            )
        print_table(table)


def activate_command(
    version: Annotated[str, typer.Argument(help="One of those that kairos models lists.")],
    store: Store = Path("var/bundles"),
) -> None:
    """Make a published version the current one; an older one is a rollback."""
    with reporting_errors():
        BundleStore(store).activate(version)
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
