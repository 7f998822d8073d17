"""Moving a database's schema, without a configuration file: works wherever the package is."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.script.revision import ResolutionError
from alembic.util import CommandError
from sqlalchemy.exc import OperationalError

from app.errors import DatabaseUnavailableError
from model.errors import KairosError


class NewerSchemaError(KairosError):
    """The database was migrated by a later version of Kairos."""

    code = "newer_schema"


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


def check(database_url: str) -> None:
    """Compare the schema with the tables the code declares.

    Raises:
        alembic.util.CommandError: if they differ; the message lists how.
    """
    command.check(_config(database_url))


def _config(database_url: str) -> Config:
    config = Config(attributes={"database_url": database_url})
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config
