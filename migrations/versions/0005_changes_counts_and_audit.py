"""Numbered changes of items, counts of impressions, audit records, limits of keys.

Revision: 0005, after 0004. Only adds: code of 0004 runs on it. Triggers number the changes of items,
so that those made by code of 0004 are numbered, too. Items from before the migration have no number
until they change. `impression_counts` starts empty; the service counts the impressions from before
the migration in the background.
"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_id = sa.String(256).with_variant(sa.String(256, collation="C"), "postgresql")
_serial = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

_DATA_OF_ITEMS = (
    "title, search_title, categories, available_from, available_until, properties, updated_at, "
    "deleted_at"
)
# The increment locks the counter until the commit, so that numbers become visible in their order.
_INCREMENT = (
    "INSERT INTO change_numbers (name, last) VALUES ('items', 1) "
    "ON CONFLICT (name) DO UPDATE SET last = change_numbers.last + 1"
)
_SET_NUMBER = (
    "UPDATE items SET change_number = (SELECT last FROM change_numbers WHERE name = 'items') "
    "WHERE item_id = NEW.item_id"
)


def upgrade() -> None:
    op.create_table(
        "change_numbers",
        sa.Column("name", sa.String(16), nullable=False),
        sa.Column("last", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_change_numbers"),
    )
    op.add_column("items", sa.Column("change_number", sa.BigInteger(), nullable=True))
    op.create_index("ix_items_change_number", "items", ["change_number"])
    _create_triggers()
    op.add_column("recommendations", sa.Column("clicked_at", sa.BigInteger(), nullable=True))
    op.create_table(
        "impression_counts",
        sa.Column("model_version", sa.String(64), nullable=False),
        sa.Column("day", sa.Integer(), nullable=False),
        sa.Column("shown", sa.BigInteger(), nullable=False),
        sa.Column("clicked", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("model_version", "day", name="pk_impression_counts"),
    )
    op.create_table(
        "audit_records",
        sa.Column("id", _serial, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("actor", sa.String(160), nullable=False),
        sa.Column("action", sa.String(32), nullable=False),
        sa.Column("detail", sa.JSON(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_audit_records"),
    )
    op.create_index("ix_audit_records_at", "audit_records", ["at"])
    op.add_column("api_keys", sa.Column("user_prefix", _id, nullable=True))
    op.add_column(
        "api_keys",
        sa.Column("may_list_users", sa.Boolean(), nullable=False, server_default=sa.true()),
    )
    op.add_column("events", sa.Column("sender_event_id", _id, nullable=True))


def downgrade() -> None:
    _drop_triggers()
    op.drop_column("events", "sender_event_id")
    op.drop_column("api_keys", "may_list_users")
    op.drop_column("api_keys", "user_prefix")
    op.drop_table("audit_records")
    op.drop_table("impression_counts")
    op.drop_column("recommendations", "clicked_at")
    op.drop_index("ix_items_change_number", table_name="items")
    op.drop_column("items", "change_number")
    op.drop_table("change_numbers")


def _create_triggers() -> None:
    if op.get_bind().dialect.name == "sqlite":
        for name, change in (("insert", "INSERT"), ("update", f"UPDATE OF {_DATA_OF_ITEMS}")):
            op.execute(
                f"CREATE TRIGGER number_items_{name} AFTER {change} ON items "
                f"BEGIN {_INCREMENT}; {_SET_NUMBER}; END"
            )
        return
    op.execute(
        "CREATE FUNCTION number_item() RETURNS trigger LANGUAGE plpgsql AS $$ "
        f"BEGIN {_INCREMENT} RETURNING last INTO NEW.change_number; RETURN NEW; END $$"
    )
    op.execute(
        "CREATE TRIGGER number_items BEFORE INSERT OR UPDATE ON items "
        "FOR EACH ROW EXECUTE FUNCTION number_item()"
    )


def _drop_triggers() -> None:
    if op.get_bind().dialect.name == "sqlite":
        op.execute("DROP TRIGGER number_items_insert")
        op.execute("DROP TRIGGER number_items_update")
        return
    op.execute("DROP TRIGGER number_items ON items")
    op.execute("DROP FUNCTION number_item()")
