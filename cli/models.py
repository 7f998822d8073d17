"""The `kairos models` commands: list, show, activate, rollback, sign."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from cli.activation import make_current, roll_back
from cli.console import exit_on_error, print_message, print_table
from cli.options import DEFAULT_STORE, Database, Json, Reason, Store, open_store
from model.bundle.kernels import compute_kernel_curves
from model.bundle.manifest import MANIFEST, Manifest
from model.bundle.writing import sign_bundle
from model.clock import to_datetime
from model.errors import BundleError, KairosError
from model.store.store import BundleStore
from model.store.traffic import Traffic

models_app = typer.Typer(
    help="Published models: list, show, activate, roll back, sign.", no_args_is_help=True
)

Version = Annotated[str, typer.Argument(help="A version that kairos models list shows.")]

_MAX_PERIODS = 5


@models_app.command("list")
def list_command(store: Store = DEFAULT_STORE, as_json: Json = False) -> None:
    """List the published versions and their roles, newest first."""
    with exit_on_error():
        bundles = open_store(store)
        rows = [_build_version_row(bundles, version) for version in bundles.list_versions()]
    if as_json:
        typer.echo(json.dumps(rows, indent=1))
        return
    if not rows:
        print_message(f"{escape(str(store))} contains no version; publish one with kairos publish")
        return
    table = Table()
    for column in ("version", "role", "items", "ndcg@10", "trained until"):
        table.add_column(column, overflow="fold")
    for row in rows:
        role = f"refused: {row['refused']}" if row["refused"] else ", ".join(row["answers"])
        quality = row["ndcg@10"]
        table.add_row(
            row["version"],
            escape(role),
            str(row["items"] or ""),
            "" if quality is None else f"{quality:.4f}",
            row["trained_until"] or "",
        )
    print_table(table)


@models_app.command("show")
def show_command(version: Version, store: Store = DEFAULT_STORE) -> None:
    """Verify a version, and show its metrics, provenance and strongest periods."""
    with exit_on_error():
        bundles = open_store(store)
        bundle = bundles.open(version).bundle
        table = Table(title=version, show_header=False)
        for name, value in _describe(bundle.manifest, _list_roles(bundles, version)):
            table.add_row(name, escape(value))
        for curve in compute_kernel_curves(bundle.recommender, bundle.manifest.data_window.days):
            strongest = (curve.spectrum or ())[:_MAX_PERIODS]
            periods = ", ".join(f"{rhythm.period_days:.3g}" for rhythm in strongest)
            table.add_row(f"{curve.kind}, strongest periods in days", periods or "none fixed")
        print_table(table)


@models_app.command("activate")
def activate_command(
    version: Version,
    reason: Reason = None,
    store: Store = DEFAULT_STORE,
    database: Database = None,
) -> None:
    """Verify a published version, and make it the current one."""
    with exit_on_error():
        make_current(
            open_store(store), version, change="activate", reason=reason, database=database
        )
        typer.echo(version)


@models_app.command("rollback")
def rollback_command(
    reason: Reason = None, store: Store = DEFAULT_STORE, database: Database = None
) -> None:
    """Make the previously current version current again."""
    with exit_on_error():
        typer.echo(roll_back(open_store(store), reason=reason, database=database))


@models_app.command("sign")
def sign_command(
    bundles: Annotated[
        list[str] | None, typer.Argument(help="Published versions, or directories of bundles.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Sign every published version.")] = False,
    store: Store = DEFAULT_STORE,
) -> None:
    """Sign bundles with the first key of KAIROS_BUNDLE_KEY, once their digests are verified.

    Sign only what you trust: from then on it is served.
    """
    with exit_on_error():
        published = open_store(store)
        chosen = bundles or (published.list_versions() if every else [])
        if not chosen:
            raise KairosError("signing needs a bundle, but none is named; name versions, or --all")
        for bundle in chosen:
            directory = Path(bundle)
            if (directory / MANIFEST).is_file():
                temporary = directory.with_name(f".{directory.name}.signing")
                sign_bundle(directory, published.keys, temporary)
            else:
                published.sign(bundle)
            typer.echo(bundle)


def _build_version_row(store: BundleStore, version: str) -> dict[str, Any]:
    row: dict[str, Any] = {"version": version, "answers": _list_roles(store, version)}
    try:
        manifest = store.read_manifest(version)
    except BundleError as error:
        unknown = dict.fromkeys(("items", "ndcg@10", "trained_until"))
        return {**row, **unknown, "refused": str(error)}
    return {
        **row,
        "items": manifest.counts.items,
        "ndcg@10": manifest.metrics.get("ndcg@10"),
        "trained_until": _format_instant(manifest.data_window.last_at),
        "refused": None,
    }


def _list_roles(store: BundleStore, version: str) -> list[str]:
    """Return the roles of a version: current, challenger, shadow."""
    try:
        traffic = store.read_traffic()
    except BundleError:
        traffic = Traffic()
    roles = {
        "current": store.read_current(),
        f"challenger ({traffic.share:.0%})": traffic.challenger,
        "shadow": traffic.shadow,
    }
    return [role for role, holder in roles.items() if holder == version]


def _describe(manifest: Manifest, roles: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the rows of `kairos models show`."""
    window, counts = manifest.data_window, manifest.counts
    yield "role", ", ".join(roles) or "none"
    yield "trained", f"{manifest.created_at:%Y-%m-%d %H:%M UTC}"
    yield "on events", f"{_format_instant(window.first_at)} to {_format_instant(window.last_at)}"
    yield "events, users, items", f"{counts.events}, {counts.users}, {counts.items}"
    yield "encoder", manifest.recommender.encoder.kind
    for metric, value in sorted(manifest.metrics.items()):
        yield metric, f"{value:.4f}"
    for name, fact in manifest.provenance.items():
        if not isinstance(fact, list):  # epochs and curves are too long; the dashboard plots them
            yield name, str(fact)


def _format_instant(instant: int) -> str:
    return to_datetime(instant).strftime("%Y-%m-%d %H:%M UTC")
