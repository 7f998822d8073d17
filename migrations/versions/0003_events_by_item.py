"""The events of an item, in order of time.

Revision: 0003, after 0002. Only adds an index: code of 0002 runs on it.

While PostgreSQL builds it, nobody writes events: about a second for a million of them. Where that is
too long, build it beforehand, beside the running service; it is then left as it is:

    CREATE INDEX CONCURRENTLY ix_events_item_id_at_action ON events (item_id, at, action)
"""

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # With the action in it, counting reads nothing but the index.
    op.create_index(
        "ix_events_item_id_at_action", "events", ["item_id", "at", "action"], if_not_exists=True
    )


def downgrade() -> None:
    op.drop_index("ix_events_item_id_at_action", table_name="events")
