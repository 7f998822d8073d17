"""Budgets of keys that all processes share.

Revision: 0006, after 0005. Only adds tables: code of 0005 runs on it, and limits by itself.
"""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "rate_budgets",
        sa.Column("key_id", sa.String(16), nullable=False),
        sa.Column("tokens", sa.Double(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("key_id", name="pk_rate_budgets"),
    )
    op.create_table(
        "rate_shares",
        sa.Column("key_id", sa.String(16), nullable=False),
        sa.Column("process", sa.String(16), nullable=False),
        sa.Column("arrived", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("key_id", "process", name="pk_rate_shares"),
    )


def downgrade() -> None:
    op.drop_table("rate_shares")
    op.drop_table("rate_budgets")
