"""Migrations of a database's schema, without a configuration file."""

from functools import cache
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.script.revision import ResolutionError
from alembic.util import CommandError
from sqlalchemy.pool import NullPool

from app.db.engine import open_engine, parse_url
from model.errors import KairosError


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
    command.downgrade(_build_config(database_url), revision)


@cache
def get_head() -> str:
    """Return the newest revision of this version of Kairos."""
    return str(_load_scripts().get_current_head())


def list_revisions() -> list[str]:
    """List every revision, oldest first."""
    return [script.revision for script in _load_scripts().walk_revisions()][::-1]


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
        return MigrationContext.configure(connection).get_current_revision()


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
    command.check(_build_config(database_url))


def _load_scripts() -> ScriptDirectory:
    return ScriptDirectory.from_config(_build_config("unused"))


def _build_config(database_url: str) -> Config:
    config = Config(attributes={"database_url": database_url})
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config
