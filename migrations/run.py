"""Moving a database's schema, without a configuration file: works wherever the package is."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.script.revision import ResolutionError
from alembic.util import CommandError
from sqlalchemy.exc import DatabaseError, OperationalError
from sqlalchemy.pool import NullPool

from app.db.engine import open_engine, parse_url
from app.errors import DatabaseUnavailableError
from model.errors import KairosError


class NewerSchemaError(KairosError):
    """The database was migrated by a later version of Kairos."""

    code = "newer_schema"


class SchemaBehindError(KairosError):
    """The database was not migrated as far as this version of Kairos needs."""

    code = "schema_behind"


def upgrade(database_url: str, revision: str = "head") -> None:
    """Bring the schema up to `revision`; does nothing where it is there already.

    Raises:
        NewerSchemaError: if the schema is at a revision this version does not know.
        DatabaseUnavailableError: if the database does not answer.
    """
    try:
        command.upgrade(_config(database_url), revision)
    except OperationalError as error:
        raise DatabaseUnavailableError(
            f"a database must answer before it can be migrated, but this one said: {error.orig}; "
            "start it, or correct KAIROS_DATABASE_URL"
        ) from error
    except CommandError as error:
        if not isinstance(error.__cause__, ResolutionError):
            raise
        raise NewerSchemaError(
            f"a schema can be brought up to a revision this version knows, but this one is already "
            f"beyond ({error}); run the version of Kairos that migrated it"
        ) from error


def downgrade(database_url: str, revision: str) -> None:
    """Take the schema back to `revision` ("base": no tables at all)."""
    command.downgrade(_config(database_url), revision)


def head() -> str:
    """The revision this version of Kairos works with."""
    return str(_scripts().get_current_head())


def revisions() -> list[str]:
    """Every revision there is, oldest first."""
    return [script.revision for script in _scripts().walk_revisions()][::-1]


def revision(database_url: str) -> str | None:
    """The revision a database is at; None where it was never migrated. Creates nothing.

    Raises:
        DatabaseUnavailableError: if the database does not answer.
    """
    url = parse_url(database_url)
    if url.get_backend_name() == "sqlite" and not Path(str(url.database)).exists():
        return None
    engine = open_engine(database_url, poolclass=NullPool)
    try:
        with engine.connect() as connection:
            return MigrationContext.configure(connection).get_current_revision()
    except DatabaseError as error:
        raise DatabaseUnavailableError(
            f"a database must answer, but this one said: {error.orig}; start it, or correct "
            "KAIROS_DATABASE_URL"
        ) from error


def require_upgraded(database_url: str) -> None:
    """Make sure that a database holds every table this version knows; more does no harm.

    Raises:
        SchemaBehindError: if it does not.
        DatabaseUnavailableError: if the database does not answer.
    """
    at = revision(database_url)
    if at is None or at in revisions()[:-1]:
        raise SchemaBehindError(
            f"this needs a database at revision {head()}, but it "
            + ("was never migrated" if at is None else f"is at {at}")
            + "; run kairos migrate, or correct KAIROS_DATABASE_URL"
        )


def check(database_url: str) -> None:
    """Compare the schema with the tables the code declares.

    Raises:
        alembic.util.CommandError: if they differ; the message lists how.
    """
    command.check(_config(database_url))


def _scripts() -> ScriptDirectory:
    return ScriptDirectory.from_config(_config("unused"))


def _config(database_url: str) -> Config:
    config = Config(attributes={"database_url": database_url})
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config
