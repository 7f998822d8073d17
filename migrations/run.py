"""Migrations of a database's schema, without a configuration file.

Alembic is imported when it has work: most processes start on a schema that is up to date.
"""

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import inspect, text
from sqlalchemy.pool import NullPool

from app.db.engine import open_engine, parse_url
from model.errors import KairosError

if TYPE_CHECKING:
    from alembic.config import Config

_VERSION_TABLE = "alembic_version"
_SCRIPTS = Path(__file__).parent


class NewerSchemaError(KairosError):
    """The database was migrated by a later version of Kairos."""

    code = "newer_schema"


class SchemaBehindError(KairosError):
    """The database was not migrated as far as this version of Kairos needs."""

    code = "schema_behind"


def upgrade(database_url: str, revision: str = "head") -> None:
    """Upgrade the schema to `revision`; do nothing if it is there already.

    Raises:
        NewerSchemaError: if the schema is at a revision that this version does not have.
        DatabaseUnavailableError: if the database does not respond.
    """
    # Alembic would take SQLite's only write lock, for which every start would compete with writers.
    if revision == "head" and read_revision(database_url) == get_head():
        return

    from alembic import command  # noqa: PLC0415
    from alembic.script.revision import ResolutionError  # noqa: PLC0415
    from alembic.util import CommandError  # noqa: PLC0415

    try:
        command.upgrade(_build_config(database_url), revision)
    except CommandError as error:
        if not isinstance(error.__cause__, ResolutionError):
            raise
        raise NewerSchemaError(
            f"a schema can be upgraded to a revision of this version, but this one is already "
            f"beyond ({error}); run the version of Kairos that migrated it"
        ) from error


def downgrade(database_url: str, revision: str) -> None:
    """Downgrade the schema to `revision` ("base": no tables at all)."""
    from alembic import command  # noqa: PLC0415

    command.downgrade(_build_config(database_url), revision)


def get_head() -> str:
    """Return the newest revision of this version of Kairos."""
    return list_revisions()[-1]


@cache
def list_revisions() -> list[str]:
    """List every revision, oldest first: the numbers with which the names of the scripts begin."""
    return sorted(file.name.partition("_")[0] for file in _SCRIPTS.glob("versions/[0-9]*.py"))


def read_revision(database_url: str) -> str | None:
    """Read the revision of a database; None if it was never migrated. Create no file.

    Raises:
        DatabaseUnavailableError: if the database does not respond.
    """
    url = parse_url(database_url)
    if url.get_backend_name() == "sqlite" and not Path(str(url.database)).exists():
        return None
    engine = open_engine(database_url, poolclass=NullPool)
    with engine.connect() as connection:
        if not inspect(connection).has_table(_VERSION_TABLE):
            return None
        numbers = connection.scalars(text(f"SELECT version_num FROM {_VERSION_TABLE}"))
        return numbers.one_or_none()


def require_upgraded(database_url: str) -> None:
    """Check that a database has at least the newest revision of this version.

    Raises:
        SchemaBehindError: if it has not.
        DatabaseUnavailableError: if the database does not respond.
    """
    at = read_revision(database_url)
    if at is None or at in list_revisions()[:-1]:
        raise SchemaBehindError(
            f"this needs a database at revision {get_head()}, but it "
            + ("was never migrated" if at is None else f"is at {at}")
            + "; run kairos migrate, or correct KAIROS_DATABASE_URL"
        )


def check(database_url: str) -> None:
    """Compare the schema with the declared tables.

    Raises:
        alembic.util.CommandError: if they differ; the message lists the differences.
    """
    from alembic import command  # noqa: PLC0415

    command.check(_build_config(database_url))


def _build_config(database_url: str) -> "Config":
    from alembic.config import Config  # noqa: PLC0415

    config = Config(attributes={"database_url": database_url})
    config.set_main_option("script_location", str(_SCRIPTS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config
