"""Events and items.

Revision: 0001, after nothing
"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_id = sa.String(256).with_variant(sa.String(256, collation="C"), "postgresql")
_serial = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "events",
        sa.Column("id", _serial, nullable=False),
        sa.Column("event_id", _id, nullable=False),
        sa.Column("user_id", _id, nullable=False),
        sa.Column("item_id", _id, nullable=False),
        sa.Column("action", sa.String(64), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("value", sa.Double(), nullable=True),
        sa.Column("recommendation_id", _id, nullable=True),
        sa.Column("properties", sa.JSON(), nullable=True),
        sa.Column("received_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_events"),
        sa.UniqueConstraint("event_id", name="uq_events_event_id"),
    )
    op.create_index("ix_events_user_id_at_id", "events", ["user_id", "at", "id"])
    op.create_table(
        "items",
        sa.Column("item_id", _id, nullable=False),
        sa.Column("title", sa.Text(), nullable=True),
        sa.Column("search_title", sa.Text(), nullable=True),
        sa.Column("categories", sa.JSON(), nullable=False),
        sa.Column("available_from", sa.BigInteger(), nullable=True),
        sa.Column("available_until", sa.BigInteger(), nullable=True),
        sa.Column("properties", sa.JSON(), nullable=True),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("item_id", name="pk_items"),
    )


def downgrade() -> None:
    op.drop_table("items")
    op.drop_index("ix_events_user_id_at_id", table_name="events")
    op.drop_table("events")
