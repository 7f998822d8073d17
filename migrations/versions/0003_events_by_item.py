"""The events of an item, in order of time.

Revision: 0003, after 0002. Only adds an index: code of 0002 runs on it.

While PostgreSQL builds it, events cannot be written: about a second for a million of them. To avoid
that, build it beforehand while the service runs; the migration then leaves it as it is:

    CREATE INDEX CONCURRENTLY ix_events_item_id_at_action ON events (item_id, at, action)
"""

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # It includes the action, so that counting reads the index alone.
    op.create_index(
        "ix_events_item_id_at_action", "events", ["item_id", "at", "action"], if_not_exists=True
    )


def downgrade() -> None:
    op.drop_index("ix_events_item_id_at_action", table_name="events")
