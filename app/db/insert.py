"""INSERT .. ON CONFLICT for both databases; SQLAlchemy has one construct per dialect."""

from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from app.db.tables import Table


def insert_into(session: Session, table: type[Table]) -> sqlite.Insert | postgresql.Insert:
    """Build an INSERT with `on_conflict_do_nothing` and `on_conflict_do_update`."""
    dialect = session.get_bind().dialect.name
    return sqlite.insert(table) if dialect == "sqlite" else postgresql.insert(table)
