"""The `kairos migrate` command."""

from cli.console import exit_on_error
from cli.options import Database, resolve_database_url


def migrate_command(database: Database = None) -> None:
    """Migrate the database schema to the newest revision."""
    from migrations.run import upgrade  # noqa: PLC0415 - Alembic loads slowly

    with exit_on_error():
        upgrade(resolve_database_url(database))
