"""Options that several commands share, and the parsers of their values."""

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from cli.console import print_message
from model.bundle.signature import BundleKeys
from model.clock import from_datetime
from model.errors import BundleError, KairosError
from model.store.location import is_url
from model.store.mirrored import MirroredStore
from model.store.store import BundleStore
from training.config import list_shipped_recipes
from training.data.database_source import read_erasures
from training.data.erasures import Erasures
from training.engines import EngineName

if TYPE_CHECKING:
    from app.db.erasure_log import ErasureLog

EVENTS_HELP = (
    "Events: a Parquet, CSV, TSV or JSONL file, a directory or glob of them, the directory or URL "
    "of kairos prepare, or the service's database URL."
)
Events = Annotated[str, typer.Option(help=EVENTS_HELP)]
Items = Annotated[
    str | None, typer.Option(help="Titles and categories: a file or the database URL.")
]
Erased = Annotated[
    str | None,
    typer.Option(
        help="Database URL whose erased users are left out of events that come from files. "
        "Events from a database never contain its erased users."
    ),
]
RECIPE_HELP = f"A TOML file, or a shipped recipe: {', '.join(list_shipped_recipes())}."
Recipe = Annotated[str, typer.Option(help=RECIPE_HELP)]
OptionalRecipe = Annotated[
    str | None,
    typer.Option(help=f"{RECIPE_HELP} By default the one that kairos inspect recommends."),
]
Threads = Annotated[int, typer.Option(help="Threads for tensor operations.", min=1)]
Engine = Annotated[
    EngineName,
    typer.Option(
        help="Where tasks run: on this machine, or by Ray, on the cluster of RAY_ADDRESS if it is "
        "set; it needs pip install 'kairos\\[scale]'."
    ),
]
Workers = Annotated[
    int, typer.Option(help="Processes of the local engine; Ray uses all of its CPUs.", min=1)
]
Device = Annotated[
    str, typer.Option(help="auto, cpu, cuda or cuda:N; auto is a GPU where there is one.")
]
Store = Annotated[
    str,
    typer.Option(
        help="Directory of published bundles, or s3://bucket/prefix.",
        envvar="KAIROS_BUNDLE_STORE",
    ),
]
Database = Annotated[
    str | None, typer.Option(help="Database URL; by default the setting KAIROS_DATABASE_URL.")
]
Reason = Annotated[
    str | None, typer.Option(help="One line, recorded with the change in the database.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
InputFile = Annotated[
    str,
    typer.Argument(help="A Parquet, CSV, TSV or JSONL file, or a directory or glob of them."),
]

DEFAULT_STORE = "var/bundles"


def resolve_database_url(database: str | None) -> str:
    """Return the URL of `--database`, or else that of the settings."""
    from app.settings import Settings  # noqa: PLC0415 - the service's modules load slowly

    return database or Settings().database_url


def resolve_erasure_log(database_url: str) -> "ErasureLog":
    """Return the log of erasures of a database; the setting is of the settings' database only."""
    from app.db.erasure_log import open_erasure_log  # noqa: PLC0415 - the service loads slowly
    from app.settings import Settings  # noqa: PLC0415

    settings = Settings()
    is_of_settings = database_url == settings.database_url
    return open_erasure_log(database_url, settings.erasure_log if is_of_settings else None)


def load_bundle_keys() -> BundleKeys:
    """Load the keys that bundles are signed with, from the settings."""
    from app.settings import Settings  # noqa: PLC0415 - the service's modules load slowly

    return Settings().load_bundle_keys()


def open_store(store: Path | str) -> BundleStore:
    """Return a store whose bundles must be signed if the settings have a key.

    The local copy of an object store is brought up to date first.

    Raises:
        KairosError: if the object store does not answer.
        StoreBusyError: if another process downloads into that copy for too long.
    """
    from app.settings import Settings  # noqa: PLC0415 - the service's modules load slowly

    opened = Settings(bundle_store=store).open_bundle_store()
    if isinstance(opened, MirroredStore):
        try:
            opened.synchronize(lists=True, waits=True)
        except OSError as error:
            raise KairosError(
                f"the bundles of {store} must be reachable, but they are not ({error}); check "
                "AWS_ENDPOINT_URL and the credentials"
            ) from error
        except BundleError as error:
            print_message(f"[bold yellow]warning[/] {escape(str(error))}")
    return opened


def require_local_store(store: str) -> Path:
    """Return the directory of a store.

    Raises:
        KairosError: if the store is an object store.
    """
    if is_url(store):
        raise KairosError(
            f"this works on a directory of bundles, but got {store!r}; pass --store with a "
            "directory, and keep copies of a bucket by its own versioning and replication"
        )
    return Path(store)


def load_erasures(erased: str | None) -> Erasures | None:
    """Load the erased users of the database of `--erased`; None without the option."""
    return None if erased is None else read_erasures(erased)


def parse_instant(option: str, text: str) -> int:
    """Parse the value of an option as an instant, in epoch microseconds.

    Raises:
        KairosError: if the text is not an RFC 3339 instant with an offset.
    """
    try:
        return from_datetime(datetime.fromisoformat(text))
    except ValueError as error:
        raise KairosError(
            f"{option} is an RFC 3339 instant with an offset, but got {text!r}; write it like "
            "2026-11-01T00:00:00Z"
        ) from error
