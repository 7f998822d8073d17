"""Alembic's entry: which database, which tables, and one upgrade at a time."""

from alembic import context
from sqlalchemy import text
from sqlalchemy.pool import NullPool

from app.db.engine import WRITES, open_engine
from app.db.tables import Table
from app.settings import Settings

# Any number nobody else uses: whoever holds PostgreSQL's advisory lock of it migrates.
_MIGRATION_LOCK = 5_246_170_081


def migrate() -> None:
    """Run what Alembic was asked for, in a single transaction on either database."""
    database_url = context.config.attributes.get("database_url") or Settings().database_url
    engine = open_engine(database_url, poolclass=NullPool)
    with engine.connect().execution_options(**WRITES) as connection:
        context.configure(
            connection=connection,
            target_metadata=Table.metadata,
            compare_server_default=True,
            transactional_ddl=True,
            # SQLite alters a table by writing it anew.
            render_as_batch=connection.dialect.name == "sqlite",
        )
        with context.begin_transaction():
            if connection.dialect.name == "postgresql":
                connection.execute(
                    text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _MIGRATION_LOCK}
                )
            context.run_migrations()


migrate()
