"""Commands around published models: list, show, activate, roll back."""

import getpass
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from cli.console import console, print_table, reporting_errors
from cli.online import Database, database_url_of
from model.bundle.kernels import kernel_curves
from model.bundle.manifest import Manifest
from model.clock import to_datetime
from model.errors import BundleError, KairosError
from model.store.store import BundleStore
from model.store.traffic import Traffic

if TYPE_CHECKING:
    from app.db.database import Database as ServiceDatabase
    from app.models.schemas import ActivationKind

models_app = typer.Typer(
    help="Published models: list, show, activate, roll back.", no_args_is_help=True
)

Store = Annotated[
    Path, typer.Option(help="Directory of published bundles.", envvar="KAIROS_BUNDLE_STORE")
]
Reason = Annotated[
    str | None, typer.Option(help="Why: one line, kept with the change in the database.")
]

_LONGEST_REASON = 500
_PERIODS_SHOWN = 5


@models_app.command("list")
def list_command(
    store: Store = Path("var/bundles"),
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """List the published versions, newest first, and what each answers."""
    with reporting_errors():
        published = BundleStore(store)
        rows = [_row(published, version) for version in published.versions()]
    if as_json:
        typer.echo(json.dumps(rows, indent=1))
        return
    if not rows:
        console.print(
            f"nothing is published in {escape(str(store))} yet; kairos publish does",
            highlight=False,
            soft_wrap=True,
        )
        return
    table = Table()
    for column in ("version", "answers", "items", "ndcg@10", "trained until"):
        table.add_column(column, overflow="fold")
    for row in rows:
        answers = f"refused: {row['refused']}" if row["refused"] else ", ".join(row["answers"])
        quality = row["ndcg@10"]
        table.add_row(
            row["version"],
            escape(answers),
            str(row["items"] or ""),
            "" if quality is None else f"{quality:.4f}",
            row["trained_until"] or "",
        )
    print_table(table)


@models_app.command("show")
def show_command(
    version: Annotated[str, typer.Argument(help="One of those that kairos models list shows.")],
    store: Store = Path("var/bundles"),
) -> None:
    """Show what a version is, once it is opened and proved sound."""
    with reporting_errors():
        published = BundleStore(store)
        predictor = published.open(version)
        table = Table(title=version, show_header=False)
        for name, value in _facts(predictor.bundle.manifest, _answers(published, version)):
            table.add_row(name, escape(value))
        for curve in kernel_curves(
            predictor.bundle.recommender, predictor.bundle.manifest.data_window.days
        ):
            strongest = (curve.spectrum or ())[:_PERIODS_SHOWN]
            periods = ", ".join(f"{rhythm.period_days:.3g}" for rhythm in strongest)
            table.add_row(f"{curve.kind}, strongest periods in days", periods or "none fixed")
        print_table(table)


@models_app.command("activate")
def activate_command(
    version: Annotated[str, typer.Argument(help="One of those that kairos models list shows.")],
    reason: Reason = None,
    store: Store = Path("var/bundles"),
    database: Database = None,
) -> None:
    """Make a published version the current one, once it is proved sound."""
    with reporting_errors():
        make_current(
            BundleStore(store), version, change="activate", reason=reason, database=database
        )
        typer.echo(version)


@models_app.command("rollback")
def rollback_command(
    reason: Reason = None, store: Store = Path("var/bundles"), database: Database = None
) -> None:
    """Make the version that was current before this one current again."""
    with reporting_errors():
        published = BundleStore(store)
        from app.models.activation import roll_back_blocking  # noqa: PLC0415 - loads slowly

        with _service_database(database) as records:
            _, predictor = roll_back_blocking(
                published, records, published.open, actor=_actor(), reason=_one_line(reason)
            )
        typer.echo(predictor.version)


def make_current(
    store: BundleStore,
    version: str,
    *,
    change: "ActivationKind",
    reason: str | None = None,
    database: str | None = None,
) -> None:
    """Make a version the current one once it is proved sound, and write that down.

    Where the database does not answer, the version becomes current all the same, with a warning:
    whoever is at the machine may need to change what is served just then.

    Raises:
        BundleError: if there is no such version, or it cannot be opened.
        KairosError: if the reason is not a line.
    """
    from app.errors import DatabaseUnavailableError  # noqa: PLC0415 - the service loads slowly
    from app.models.activation import activate_blocking  # noqa: PLC0415

    reason = _one_line(reason)
    try:
        with _service_database(database) as records:
            activate_blocking(
                store, records, version, store.open, actor=_actor(), reason=reason, kind=change
            )
    except DatabaseUnavailableError as error:
        store.open(version)
        with store.changing():
            store.activate(version)
        console.print(
            f"[bold yellow]warning[/] {escape(version)} is current now, but that was not written "
            f"down for kairos models rollback and GET /v1/models/changes: {escape(str(error))}",
            highlight=False,
            soft_wrap=True,
        )


@contextmanager
def _service_database(database: str | None) -> Iterator["ServiceDatabase"]:
    """Open the service's database, which must exist."""
    from app.db.database import Database as ServiceDatabase  # noqa: PLC0415 - loads slowly
    from app.db.engine import parse_url  # noqa: PLC0415
    from app.errors import DatabaseUnavailableError  # noqa: PLC0415

    database_url = database or database_url_of()
    url = parse_url(database_url)
    if url.get_backend_name() == "sqlite" and not Path(str(url.database)).exists():
        raise DatabaseUnavailableError(
            f"changes are written down in the service's database, but {url.database} does not "
            "exist; name it with --database or KAIROS_DATABASE_URL"
        )
    records = ServiceDatabase(database_url, threads=1, queue=0)
    try:
        yield records
    finally:
        records.close()


def _actor() -> str:
    return f"cli:{getpass.getuser()}"[:160]


def _one_line(reason: str | None) -> str | None:
    if reason is not None and (len(reason) > _LONGEST_REASON or not reason.isprintable()):
        raise KairosError(
            f"a reason is one line of at most {_LONGEST_REASON} characters, but this one has "
            f"{len(reason)} or more than a line; shorten it"
        )
    return reason or None


def _row(store: BundleStore, version: str) -> dict[str, Any]:
    row: dict[str, Any] = {"version": version, "answers": _answers(store, version)}
    try:
        manifest = store.manifest(version)
    except BundleError as error:
        unknown = dict.fromkeys(("items", "ndcg@10", "trained_until"))
        return {**row, **unknown, "refused": str(error)}
    return {
        **row,
        "items": manifest.counts.items,
        "ndcg@10": manifest.metrics.get("ndcg@10"),
        "trained_until": _day(manifest.data_window.last_at),
        "refused": None,
    }


def _answers(store: BundleStore, version: str) -> list[str]:
    """What a version does, as the store says."""
    try:
        traffic = store.traffic()
    except BundleError:
        traffic = Traffic()
    roles = {
        "current": store.current(),
        f"challenger ({traffic.share:.0%})": traffic.challenger,
        "shadow": traffic.shadow,
    }
    return [role for role, named in roles.items() if named == version]


def _facts(manifest: Manifest, answers: list[str]) -> Iterator[tuple[str, str]]:
    window, counts = manifest.data_window, manifest.counts
    yield "answers", ", ".join(answers) or "nobody"
    yield "trained", f"{manifest.created_at:%Y-%m-%d %H:%M UTC}"
    yield "on events", f"{_day(window.first_at)} to {_day(window.last_at)}"
    yield "events, users, items", f"{counts.events}, {counts.users}, {counts.items}"
    yield "encoder", manifest.recommender.encoder.kind
    for metric, value in sorted(manifest.metrics.items()):
        yield metric, f"{value:.4f}"
    for name, told in manifest.provenance.items():
        if not isinstance(told, list):  # epochs and curves fill pages; the dashboard draws them
            yield name, str(told)


def _day(instant: int) -> str:
    return to_datetime(instant).strftime("%Y-%m-%d %H:%M UTC")
