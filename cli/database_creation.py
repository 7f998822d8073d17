"""Creates a database from files in a process of its own, beside what else a first start needs.

This module imports little: the process can begin before the command imports what trains and serves,
which takes seconds.
"""

import multiprocessing
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from training.retraining.lock import Exclusion, lock_file

DATABASE_NAME = "kairos.db"
"""The SQLite file of a first start, in its directory."""
_LOCK = ".first-start"
_ONE_START = Exclusion(
    "only one process may serve and train in a directory",
    "open its dashboard (kairos dashboard), stop it, or name another --directory",
)


def lock_directory(directory: Path) -> AbstractContextManager[None]:
    """Keep other first starts out of a directory until the block ends, or this process does.

    Raises:
        AlreadyRunningError: if another process is at work there.
    """
    return lock_file(directory / _LOCK, _ONE_START)


@contextmanager
def create_beside(
    database_file: Path, events_file: str, items_file: str | None
) -> Iterator[Callable[[], None]]:
    """Create a database in another process, for its work leaves no time to other threads.

    Args:
        events_file: as for `training.data.sources.read_events`.
        items_file: as for `training.data.sources.read_items`.

    Yields:
        A function that waits until the database is there, and prints what was imported. It raises
        what the creation raised.
    """
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as processes:
        began = time.monotonic()
        creation = processes.submit(_create, database_file, events_file, items_file)

        def wait() -> None:
            from cli.console import print_message  # noqa: PLC0415 - not before the process began

            stored, left_out = creation.result()
            seconds = time.monotonic() - began
            print_message(f"[bold]imported[/] {stored:,} events ({seconds:.1f} s)")
            if left_out:
                print_message(
                    f"[yellow]left out[/] {left_out:,} events with implausible times; "
                    "kairos inspect describes them"
                )

        yield wait


def _create(database_file: Path, events_file: str, items_file: str | None) -> tuple[int, int]:
    """Create the database; return how many events it holds, and how many were left out."""
    from app.new_database import create_database  # noqa: PLC0415 - in the other process alone
    from training.data.sources import read_events, read_items  # noqa: PLC0415

    items = None if items_file is None else read_items(items_file)
    imported = create_database(database_file, read_events(events_file), items)
    return imported.stored, len(imported.left_out)
