"""The batch retraining job: train, compare with what is served, and serve it if it is as good."""

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Annotated

import torch
import typer

from cli.console import console, reporting_errors
from cli.models import Store
from cli.offline import Items, Recipe, Threads, device_named
from cli.online import database_url_of
from cli.retrain_progress import Bars, LogLines
from model.clock import from_datetime, now
from model.errors import KairosError
from model.store.store import BundleStore
from training.config import RunConfig
from training.data.sources import is_database
from training.retraining.job import Journal, NoJournal, RetrainingJob
from training.retraining.lock import AlreadyRunningError, already_running, file_lock, this_process
from training.retraining.report import PAGE, RunReport
from training.retraining.retrain import retrain

LOCKED = 3
"""Exit code of a run that another one kept from beginning."""

_LOCK = ".retraining"


def retrain_command(
    recipe: Recipe,
    events: Annotated[
        str | None,
        typer.Option(
            help="Events: files as for train, or a database URL; by default KAIROS_DATABASE_URL."
        ),
    ] = None,
    items: Items = None,
    store: Store = Path("var/bundles"),
    runs: Annotated[
        Path, typer.Option(help="Where each run has a directory for checkpoint and report.")
    ] = Path("var/runs"),
    database: Annotated[
        str | None,
        typer.Option(
            help="The service's database, which keeps the record and knows who was erased; by "
            "default that of --events, if it is one."
        ),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(
            help="Learn from no later events: an RFC 3339 instant with an offset; now by default. "
            "A killed run goes on when it is run with the same one."
        ),
    ] = None,
    known_by: Annotated[
        str | None,
        typer.Option(help="Nor from events that arrived later; by default the same instant."),
    ] = None,
    warm_start: Annotated[
        bool, typer.Option("--warm-start", help="Begin from the weights of the current version.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Decide, but publish and activate nothing.")
    ] = False,
    keep: Annotated[
        int | None,
        typer.Option(help="Afterwards remove all but so many versions and runs.", min=1),
    ] = None,
    threads: Threads = 2,
    device: Annotated[str, typer.Option(help="cpu, cuda or cuda:N.")] = "cpu",
) -> None:
    """Train a challenger, and let it answer in place of the current version if the gate lets it.

    Prints the result (promoted, kept, passed) and the report. Exits with 0 where a decision was
    reached, 1 where not, 3 where another run is at it.
    """
    with reporting_errors():
        torch.set_num_threads(threads)
        source = events or database_url_of()
        known = database or (source if is_database(source) else None)
        cut = now() if until is None else _instant("--until", until)
        job = RetrainingJob(
            config=RunConfig.read(recipe),
            recipe=Path(recipe).stem,
            events=source,
            items=items or (source if is_database(source) else None),
            database=known,
            until=cut,
            known_by=cut if known_by is None else _instant("--known-by", known_by),
            warm_start=warm_start,
            promotes=not dry_run,
            keep=keep,
        )
        try:
            report = _retrain(job, BundleStore(store), runs, device_named(device))
        except AlreadyRunningError as error:
            console.print(f"[bold yellow]busy[/] {error}", highlight=False, soft_wrap=True)
            raise typer.Exit(LOCKED) from error
        typer.echo(report.result)
        typer.echo(runs / report.directory / PAGE)


def _retrain(job: RetrainingJob, store: BundleStore, runs: Path, device: torch.device) -> RunReport:
    from app.db.database import Database  # noqa: PLC0415 - the service's parts load slowly
    from app.training_runs.journal import DatabaseJournal  # noqa: PLC0415
    from migrations.run import upgrade  # noqa: PLC0415

    with ExitStack() as stack:
        require_lock = stack.enter_context(_alone(store, job.database))
        journal: Journal = NoJournal(store)
        if job.database is not None:
            upgrade(job.database)
            connections = Database(job.database, threads=1, queue=0)
            stack.callback(connections.close)
            journal = DatabaseJournal(store, connections, actor=f"cli:{socket.gethostname()}")
        progress: Bars | LogLines = LogLines()
        if console.is_terminal:
            progress = stack.enter_context(Bars(job.config.fit.monitor))
        report = retrain(
            job,
            store=store,
            runs=runs,
            journal=journal,
            progress=progress,
            require_lock=require_lock,
            device=device,
        )
    progress.end(report)
    return report


@contextmanager
def _alone(store: BundleStore, database: str | None) -> Iterator[Callable[[], None]]:
    """No other run for this store or this database, on any machine that shares one of them.

    Yields:
        What raises once that is no longer so.
    """
    from app.db.engine import parse_url  # noqa: PLC0415
    from app.training_runs.lock import AdvisoryLock  # noqa: PLC0415

    with ExitStack() as stack:
        stack.enter_context(file_lock(store.root / _LOCK))
        require_lock: Callable[[], None] = _sure
        if database is not None:
            url = parse_url(database)
            if url.get_backend_name() == "sqlite":
                stack.enter_context(file_lock(Path(f"{url.database}{_LOCK}")))
            else:
                lock = stack.enter_context(AdvisoryLock(database, f"retrain: {this_process()}"))
                if not lock.take():
                    raise already_running(lock.holder(), "a lock of the database")
                require_lock = lock.require
        yield require_lock


def _sure() -> None:
    """A file's lock is lost with the process alone."""


def _instant(option: str, text: str) -> int:
    try:
        return from_datetime(datetime.fromisoformat(text))
    except ValueError as error:
        raise KairosError(
            f"{option} is an RFC 3339 instant with an offset, but got {text!r}; write it like "
            "2026-11-01T00:00:00Z"
        ) from error
