"""The `kairos retrain` command."""

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated

import torch
import typer

from cli.console import console, exit_on_error, print_message
from cli.options import (
    DEFAULT_STORE,
    Device,
    Items,
    Recipe,
    Store,
    Threads,
    open_store,
    parse_instant,
    resolve_database_url,
)
from cli.progress import RetrainingBars, RetrainingLines, RetrainingLog
from model.clock import now
from model.store.store import BundleStore
from training.config import RunConfig
from training.data.sources import is_database
from training.device import parse_device
from training.retraining.job import Journal, NoJournal, RetrainingJob
from training.retraining.lock import (
    AlreadyRunningError,
    build_already_running_error,
    describe_process,
    lock_file,
)
from training.retraining.report import PAGE, RunReport
from training.retraining.retrain import retrain

EXIT_LOCKED = 3
"""Exit code of a run that did not begin, because another one is running."""

_LOCK = ".retraining"


def retrain_command(
    recipe: Recipe,
    events: Annotated[
        str | None,
        typer.Option(
            help="Events: files as for train, but no prepared ones, or a database URL; by default "
            "KAIROS_DATABASE_URL."
        ),
    ] = None,
    items: Items = None,
    store: Store = DEFAULT_STORE,
    runs: Annotated[
        Path, typer.Option(help="Directory of the runs, each with its checkpoint and report.")
    ] = Path("var/runs"),
    database: Annotated[
        str | None,
        typer.Option(
            help="The service's database, which records the run and contains the erased users; by "
            "default that of --events, if it is one."
        ),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(
            help="Leave out later events: an RFC 3339 instant with an offset; now by default. "
            "A killed run resumes if it is started again with the same instant."
        ),
    ] = None,
    known_by: Annotated[
        str | None,
        typer.Option(
            help="Leave out events that arrived later than this instant; by default --until."
        ),
    ] = None,
    warm_start: Annotated[
        bool, typer.Option("--warm-start", help="Start from the weights of the current version.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Decide, but publish and activate nothing.")
    ] = False,
    keep: Annotated[
        int | None,
        typer.Option(help="Versions and runs to keep; older ones are removed at the end.", min=1),
    ] = None,
    threads: Threads = 1,
    device: Device = "cpu",
) -> None:
    """Train a challenger, and activate it if it passes the gate.

    Prints the result (promoted, kept, passed) and the path of the report. Exits with 0 after a
    decision, 1 without one, 3 if another run is in progress.
    """
    with exit_on_error():
        torch.set_num_threads(threads)
        source = events or resolve_database_url(None)
        source_database = source if is_database(source) else None
        cut = (
            _read_time(database or source_database)
            if until is None
            else parse_instant("--until", until)
        )
        job = RetrainingJob(
            config=RunConfig.read(recipe),
            recipe=Path(recipe).stem,
            events=source,
            items=items or source_database,
            database=database or source_database,
            until=cut,
            known_by=cut if known_by is None else parse_instant("--known-by", known_by),
            warm_start=warm_start,
            promotes=not dry_run,
            keep=keep,
        )
        try:
            report = run_job(job, open_store(store), runs, parse_device(device))
        except AlreadyRunningError as error:
            print_message(f"[bold yellow]busy[/] {error}")
            raise typer.Exit(EXIT_LOCKED) from error
        typer.echo(report.result)
        typer.echo(runs / report.directory / PAGE)


def _read_time(database: str | None) -> int:
    """Read the database's time, which stored events carry; without one, this machine's."""
    from app.db.clock import read_database_time  # noqa: PLC0415 - the service's modules load slowly

    return now() if database is None else read_database_time(database)


def run_job(
    job: RetrainingJob,
    store: BundleStore,
    runs: Path,
    device: torch.device,
    shown: RetrainingLines | None = None,
) -> RunReport:
    """Run a job under the locks of its store and its database, with progress.

    Args:
        shown: shows the progress; by default bars on a terminal, log events elsewhere.

    Raises:
        AlreadyRunningError: if another run holds a lock.
        KairosError: if there is no challenger.
    """
    from app.db.database import Database  # noqa: PLC0415 - the service's modules load slowly
    from app.training_runs.journal import DatabaseJournal  # noqa: PLC0415
    from migrations.run import upgrade  # noqa: PLC0415

    with ExitStack() as stack:
        require_lock = stack.enter_context(_lock_exclusively(store, job.database))
        journal: Journal = NoJournal(store)
        if job.database is not None:
            upgrade(job.database)
            connections = Database(job.database, threads=1, queue=0)
            stack.callback(connections.close)
            journal = DatabaseJournal(store, connections, actor=f"cli:{socket.gethostname()}")
        progress: RetrainingBars | RetrainingLog | RetrainingLines = shown or RetrainingLog()
        if shown is None and console.is_terminal:
            progress = stack.enter_context(RetrainingBars(job.config.fit.monitor, console))
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
def _lock_exclusively(store: BundleStore, database: str | None) -> Iterator[Callable[[], None]]:
    """Lock the store and the database against other runs, on every machine that shares them.

    Yields:
        A function that raises if the lock was lost.

    Raises:
        AlreadyRunningError: if another run holds a lock.
    """
    from app.db.engine import parse_url  # noqa: PLC0415
    from app.training_runs.lock import AdvisoryLock  # noqa: PLC0415

    with ExitStack() as stack:
        stack.enter_context(lock_file(store.root / _LOCK))
        require_lock: Callable[[], None] = _require_nothing
        if database is not None:
            url = parse_url(database)
            if url.get_backend_name() == "sqlite":
                stack.enter_context(lock_file(Path(f"{url.database}{_LOCK}")))
            else:
                lock = stack.enter_context(AdvisoryLock(database, f"retrain: {describe_process()}"))
                if not lock.take():
                    raise build_already_running_error(lock.read_holder(), "a lock of the database")
                require_lock = lock.require
        yield require_lock


def _require_nothing() -> None:
    """Check nothing: a file lock lasts as long as the process."""
