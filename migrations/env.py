"""Alembic's environment: the database, the tables, and a lock against concurrent migrations."""

from alembic import context
from sqlalchemy import text
from sqlalchemy.pool import NullPool

from app.db.engine import WRITES, open_engine
from app.db.partitions import is_of_partitions, is_partitioned
from app.db.tables import Table
from app.settings import Settings

# An arbitrary number: the key of the PostgreSQL advisory lock that a migration holds.
_MIGRATION_LOCK = 5_246_170_081
_UNIQUE_IN_ONE_TABLE = ("unique_constraint", "uq_events_event_id")


def migrate() -> None:
    """Run the requested Alembic command in a single transaction."""
    database_url = context.config.attributes.get("database_url") or Settings().database_url
    engine = open_engine(database_url, poolclass=NullPool)
    with engine.connect().execution_options(**WRITES) as connection:
        in_partitions = is_partitioned(connection)
        connection.rollback()
        context.configure(
            connection=connection,
            target_metadata=Table.metadata,
            compare_server_default=True,
            # What kairos partition-events has made of one table is not declared.
            include_object=lambda _, name, kind, *__: (
                not in_partitions
                or not (is_of_partitions(name) or (kind, name) == _UNIQUE_IN_ONE_TABLE)
            ),
            transactional_ddl=True,
            # SQLite alters a table by copying it.
            render_as_batch=connection.dialect.name == "sqlite",
        )
        with context.begin_transaction():
            if connection.dialect.name == "postgresql":
                connection.execute(
                    text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _MIGRATION_LOCK}
                )
            context.run_migrations()


migrate()
