"""Activation of a version from the command line, recorded in the service's database."""

import getpass
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich.markup import escape

from cli.console import print_message
from cli.options import resolve_database_url
from model.errors import KairosError
from model.store.store import BundleStore

if TYPE_CHECKING:
    from app.db.database import Database
    from app.models.schemas import ActivationKind

_MAX_REASON_LENGTH = 500
_MAX_ACTOR_LENGTH = 160


def make_current(
    store: BundleStore,
    version: str,
    *,
    change: "ActivationKind",
    reason: str | None = None,
    database: str | None = None,
) -> None:
    """Verify a version, make it the current one, and record the change.

    If the database is unavailable, the version becomes current with a warning: an operator may
    need to change the served model during an outage of the database.

    Raises:
        BundleError: if there is no such version, or it cannot be opened.
        KairosError: if the reason is not a line.
    """
    from app.errors import DatabaseUnavailableError  # noqa: PLC0415 - the service loads slowly
    from app.models.activation import activate_blocking  # noqa: PLC0415

    reason = _validate_reason(reason)
    try:
        with _open_database(database) as connections:
            activate_blocking(
                store,
                connections,
                version,
                store.open,
                actor=get_current_actor(),
                reason=reason,
                kind=change,
            )
    except DatabaseUnavailableError as error:
        store.open(version)
        with store.lock_pointers():
            store.activate(version)
        print_message(
            f"[bold yellow]warning[/] {escape(version)} is current now, but the change was not "
            f"recorded for kairos models rollback and GET /v1/models/changes: {escape(str(error))}"
        )


def roll_back(store: BundleStore, *, reason: str | None, database: str | None) -> str:
    """Make the previously current version current again, and return it.

    Raises:
        BundleError: if it cannot be opened.
        KairosError: if there is no previous version or no database, or the reason is not a line.
    """
    from app.models.activation import roll_back_blocking  # noqa: PLC0415 - loads slowly

    with _open_database(database) as connections:
        _, predictor = roll_back_blocking(
            store,
            connections,
            store.open,
            actor=get_current_actor(),
            reason=_validate_reason(reason),
        )
    return predictor.version


@contextmanager
def _open_database(database: str | None) -> Iterator["Database"]:
    """Open the service's database, without creating it.

    Raises:
        DatabaseUnavailableError: if there is no database.
    """
    from app.db.database import Database  # noqa: PLC0415 - the service loads slowly
    from app.db.engine import parse_url  # noqa: PLC0415
    from app.errors import DatabaseUnavailableError  # noqa: PLC0415

    database_url = resolve_database_url(database)
    url = parse_url(database_url)
    if url.get_backend_name() == "sqlite" and not Path(str(url.database)).exists():
        raise DatabaseUnavailableError(
            f"changes are recorded in the service's database, but {url.database} does not exist; "
            "name it with --database or KAIROS_DATABASE_URL"
        )
    connections = Database(database_url, threads=1, queue=0)
    try:
        yield connections
    finally:
        connections.close()


def get_current_actor() -> str:
    """Return the actor of recorded acts: `cli:` and the operating-system user."""
    return f"cli:{getpass.getuser()}"[:_MAX_ACTOR_LENGTH]


def _validate_reason(reason: str | None) -> str | None:
    """Validate and return the reason; None for an empty one.

    Raises:
        KairosError: if it is too long, or not a single printable line.
    """
    if reason is not None and (len(reason) > _MAX_REASON_LENGTH or not reason.isprintable()):
        raise KairosError(
            f"a reason is one line of at most {_MAX_REASON_LENGTH} characters, but this one has "
            f"{len(reason)} characters or several lines; shorten it"
        )
    return reason or None
