"""API keys, shown recommendations, erased users, changes of the served model, training runs.

Revision: 0002, after 0001. Only adds: code of 0001 runs on it, and lists items that were deleted since
as items without data. An item that was deleted and is then stored by code of 0001 stays deleted for
code of 0002.

A downgrade drops the additions, API keys included: code of 0001 requires none.
"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_id = sa.String(256).with_variant(sa.String(256, collation="C"), "postgresql")
_serial = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.add_column("items", sa.Column("deleted_at", sa.BigInteger(), nullable=True))
    op.create_index("ix_items_updated_at", "items", ["updated_at"])
    op.create_index(
        "ix_events_recommendation_id",
        "events",
        ["recommendation_id"],
        sqlite_where=sa.text("recommendation_id IS NOT NULL"),
        postgresql_where=sa.text("recommendation_id IS NOT NULL"),
    )
    op.create_table(
        "recommendations",
        sa.Column("recommendation_id", _id, nullable=False),
        sa.Column("user_id", _id, nullable=True),
        sa.Column("model_version", sa.String(64), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("fallback", sa.String(16), nullable=True),
        sa.Column("item_ids", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("recommendation_id", name="pk_recommendations"),
    )
    op.create_index("ix_recommendations_user_id", "recommendations", ["user_id"])
    op.create_index(
        "ix_recommendations_model_version_at", "recommendations", ["model_version", "at"]
    )
    op.create_index("ix_recommendations_at", "recommendations", ["at"])
    op.create_table(
        "api_keys",
        sa.Column("key_id", sa.String(16), nullable=False),
        sa.Column("name", sa.String(128), nullable=False),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("requests_per_second", sa.Double(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=True),
        sa.Column("revoked_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("key_id", name="pk_api_keys"),
    )
    op.create_table(
        "erased_users",
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("erased_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("digest", name="pk_erased_users"),
    )
    op.create_table(
        "model_changes",
        sa.Column("id", _serial, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("actor", sa.String(160), nullable=False),
        sa.Column("change", sa.String(16), nullable=False),
        sa.Column("version", sa.String(64), nullable=True),
        sa.Column("previous_version", sa.String(64), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("detail", sa.JSON(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_model_changes"),
    )
    op.create_table(
        "training_runs",
        sa.Column("run_id", sa.String(64), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=False),
        sa.Column("finished_at", sa.BigInteger(), nullable=True),
        sa.Column("result", sa.String(16), nullable=False),
        sa.Column("champion", sa.String(64), nullable=True),
        sa.Column("candidate", sa.String(64), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("report", sa.JSON(), nullable=True),
        sa.PrimaryKeyConstraint("run_id", name="pk_training_runs"),
    )
    op.create_index("ix_training_runs_started_at", "training_runs", ["started_at"])


def downgrade() -> None:
    op.drop_table("training_runs")
    op.drop_table("model_changes")
    op.drop_table("erased_users")
    op.drop_table("api_keys")
    op.drop_table("recommendations")
    op.drop_index("ix_events_recommendation_id", table_name="events")
    op.drop_index("ix_items_updated_at", table_name="items")
    # Without the column, the empty rows of deleted items would be items again.
    op.execute("DELETE FROM items WHERE deleted_at IS NOT NULL")
    op.drop_column("items", "deleted_at")
