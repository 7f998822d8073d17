"""The events of all items, in order of time.

Revision: 0004, after 0003. Only adds an index: code of 0003 runs on it.

While PostgreSQL builds it, events cannot be written: about a second for a million of them. To avoid
that, build it beforehand while the service runs; the migration then leaves it as it is:

    CREATE INDEX CONCURRENTLY ix_events_at_item_id_action ON events (at, item_id, action)
"""

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # It includes the rest of what counting reads, so that it reads the index alone.
    op.create_index(
        "ix_events_at_item_id_action", "events", ["at", "item_id", "action"], if_not_exists=True
    )


def downgrade() -> None:
    op.drop_index("ix_events_at_item_id_action", table_name="events")
