"""Numbered changes of items, counts of impressions, audit records, limits of keys.

Revision: 0005, after 0004. Only adds: code of 0004 runs on it. Triggers number the changes of items,
so that those made by code of 0004 are numbered, too. Items from before the migration have no number
until they change. Triggers count impressions and clicks likewise. `impression_counts` starts empty;
the service counts the impressions from before the migration in the background.
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

# Clicks and impressions are counted one transaction at a time: of a click and the impression that it
# names, the later one sees the other, and nothing can deadlock. The key is that of advisory locks.
_LOCK_COUNTS = f"pg_advisory_xact_lock({int.from_bytes(b'clicks')})"
_MICROSECONDS_PER_DAY = 86_400_000_000


def _select_click(dialect: str, impression: str) -> str:
    """Select the instant of an event that clicked an impression."""
    shows_item = _shows_item(dialect, impression, "events")
    return (
        f"SELECT events.at FROM events WHERE events.recommendation_id = {impression}.recommendation_id"
        f" AND ({impression}.user_id IS NULL OR events.user_id = {impression}.user_id)"
        f" AND {shows_item} LIMIT 1"
    )


def _shows_item(dialect: str, impression: str, event: str) -> str:
    if dialect == "sqlite":
        return (
            f"EXISTS (SELECT 1 FROM json_each({impression}.item_ids) AS shown "
            f"WHERE shown.value = {event}.item_id)"
        )
    return f"CAST({impression}.item_ids AS jsonb) ? {event}.item_id"


def _click_by_event(dialect: str) -> str:
    """Update the impression that a new event clicks."""
    return (
        "UPDATE recommendations SET clicked_at = NEW.at "
        "WHERE recommendation_id = NEW.recommendation_id AND clicked_at IS NULL "
        "AND (user_id IS NULL OR user_id = NEW.user_id) "
        f"AND {_shows_item(dialect, 'recommendations', 'NEW')}"
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
    op.add_column(
        "recommendations",
        sa.Column("is_counted", sa.Boolean(), nullable=False, server_default=sa.false()),
    )
    op.create_index(
        "ix_recommendations_uncounted",
        "recommendations",
        ["model_version"],
        sqlite_where=sa.text("NOT is_counted"),
        postgresql_where=sa.text("NOT is_counted"),
    )
    op.create_index("ix_training_runs_result", "training_runs", ["result"])
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
    op.create_index("ix_model_changes_at", "model_changes", ["at"])
    op.add_column("api_keys", sa.Column("user_prefix", _id, nullable=True))
    op.add_column(
        "api_keys",
        sa.Column("may_list_users", sa.Boolean(), nullable=False, server_default=sa.true()),
    )
    op.add_column("events", sa.Column("sender_event_id", _id, nullable=True))
    _create_counting_triggers()


def downgrade() -> None:
    _drop_counting_triggers()
    _drop_triggers()
    op.drop_column("events", "sender_event_id")
    op.drop_column("api_keys", "may_list_users")
    op.drop_column("api_keys", "user_prefix")
    op.drop_index("ix_model_changes_at", table_name="model_changes")
    op.drop_table("audit_records")
    op.drop_table("impression_counts")
    op.drop_index("ix_training_runs_result", table_name="training_runs")
    op.drop_index("ix_recommendations_uncounted", table_name="recommendations")
    op.drop_column("recommendations", "is_counted")
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


def _create_counting_triggers() -> None:
    if op.get_bind().dialect.name == "sqlite":
        _create_counting_triggers_of_sqlite()
    else:
        _create_counting_triggers_of_postgresql()


def _create_counting_triggers_of_sqlite() -> None:
    subtract = (
        "UPDATE impression_counts SET shown = shown - 1, "
        "clicked = clicked - (OLD.clicked_at IS NOT NULL) WHERE OLD.is_counted "
        f"AND model_version = OLD.model_version AND day = OLD.at / {_MICROSECONDS_PER_DAY}; "
    )
    add = (
        "INSERT INTO impression_counts (model_version, day, shown, clicked) "
        f"SELECT NEW.model_version, NEW.at / {_MICROSECONDS_PER_DAY}, 1, "
        "NEW.clicked_at IS NOT NULL WHERE NEW.is_counted ON CONFLICT (model_version, day) "
        "DO UPDATE SET shown = shown + excluded.shown, clicked = clicked + excluded.clicked; "
    )
    tidy = (
        "DELETE FROM impression_counts WHERE shown = 0 "
        f"AND model_version = OLD.model_version AND day = OLD.at / {_MICROSECONDS_PER_DAY}; "
    )
    click = _select_click("sqlite", "recommendations")
    triggers = {
        "count_impressions_insert": "AFTER INSERT ON recommendations BEGIN "
        f"UPDATE recommendations SET is_counted = 1, clicked_at = ({click}) "
        "WHERE recommendation_id = NEW.recommendation_id; ",
        "count_impressions_update": "AFTER UPDATE OF is_counted, clicked_at, model_version, at "
        f"ON recommendations BEGIN {subtract}{add}{tidy}",
        "count_impressions_delete": f"AFTER DELETE ON recommendations BEGIN {subtract}{tidy}",
        "count_clicks_insert": "AFTER INSERT ON events WHEN NEW.recommendation_id IS NOT NULL "
        f"BEGIN {_click_by_event('sqlite')}; ",
        "count_clicks_delete": "AFTER DELETE ON events WHEN OLD.recommendation_id IS NOT NULL "
        f"BEGIN UPDATE recommendations SET clicked_at = ({click}) "
        "WHERE recommendation_id = OLD.recommendation_id AND clicked_at IS NOT NULL; ",
    }
    for name, rest in triggers.items():
        op.execute(f"CREATE TRIGGER {name} {rest}END")


def _create_counting_triggers_of_postgresql() -> None:
    _create_function("lock_counts", f"PERFORM {_LOCK_COUNTS}; RETURN NULL;")
    _create_function(
        "count_impression",
        f"NEW.is_counted := true; NEW.clicked_at := ({_select_click('postgresql', 'NEW')}); "
        "RETURN NEW;",
    )
    part = (
        f"SELECT model_version, at / {_MICROSECONDS_PER_DAY} AS day, {{sign}}1 AS shown, "
        "{sign}(CASE WHEN clicked_at IS NULL THEN 0 ELSE 1 END) AS clicked "
        "FROM {rows} WHERE is_counted"
    )
    old, new = part.format(sign="-", rows="old_rows"), part.format(sign="", rows="new_rows")
    add = (
        "INSERT INTO impression_counts AS counts (model_version, day, shown, clicked) "
        "SELECT model_version, day, sum(shown), sum(clicked) FROM ({changes}) AS changes "
        "GROUP BY model_version, day HAVING sum(shown) <> 0 OR sum(clicked) <> 0 "
        "ON CONFLICT (model_version, day) DO UPDATE SET shown = counts.shown + excluded.shown, "
        "clicked = counts.clicked + excluded.clicked; "
    )
    tidy = "DELETE FROM impression_counts WHERE shown = 0; "
    for change, changes, named, tidied in (
        ("insert", new, "NEW TABLE AS new_rows", ""),
        ("update", f"{old} UNION ALL {new}", "OLD TABLE AS old_rows NEW TABLE AS new_rows", ""),
        ("delete", old, "OLD TABLE AS old_rows", tidy),
    ):
        name = f"count_impressions_{change}"
        _create_function(name, f"{add.format(changes=changes)}{tidied}RETURN NULL;")
        op.execute(
            f"CREATE TRIGGER {name} AFTER {change.upper()} ON recommendations "
            f"REFERENCING {named} FOR EACH STATEMENT EXECUTE FUNCTION {name}()"
        )
    op.execute(
        "CREATE TRIGGER lock_counts BEFORE INSERT OR UPDATE OR DELETE ON recommendations "
        "FOR EACH STATEMENT EXECUTE FUNCTION lock_counts()"
    )
    op.execute(
        "CREATE TRIGGER count_impression BEFORE INSERT ON recommendations "
        "FOR EACH ROW EXECUTE FUNCTION count_impression()"
    )
    _create_function(
        "count_click", f"PERFORM {_LOCK_COUNTS}; {_click_by_event('postgresql')}; RETURN NULL;"
    )
    op.execute(
        "CREATE TRIGGER count_click AFTER INSERT ON events FOR EACH ROW "
        "WHEN (NEW.recommendation_id IS NOT NULL) EXECUTE FUNCTION count_click()"
    )
    # Per statement: each row would search the other deleted events of its impression.
    _create_function(
        "uncount_clicks",
        "IF EXISTS (SELECT FROM old_rows WHERE recommendation_id IS NOT NULL) THEN "
        "UPDATE recommendations SET clicked_at = "
        f"({_select_click('postgresql', 'recommendations')}) WHERE clicked_at IS NOT NULL "
        "AND recommendation_id IN (SELECT recommendation_id FROM old_rows); END IF; RETURN NULL;",
    )
    op.execute(
        "CREATE TRIGGER uncount_clicks AFTER DELETE ON events "
        "REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION uncount_clicks()"
    )


_COUNTING_FUNCTIONS = {
    "lock_counts": "recommendations",
    "count_impression": "recommendations",
    "count_impressions_insert": "recommendations",
    "count_impressions_update": "recommendations",
    "count_impressions_delete": "recommendations",
    "count_click": "events",
    "uncount_clicks": "events",
}
"""On PostgreSQL, the functions and the tables whose triggers of the same name call them."""


def _create_function(name: str, body: str) -> None:
    op.execute(
        f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {body} END $$"
    )


def _drop_counting_triggers() -> None:
    if op.get_bind().dialect.name == "sqlite":
        for change in ("impressions_insert", "impressions_update", "impressions_delete"):
            op.execute(f"DROP TRIGGER count_{change}")
        for change in ("clicks_insert", "clicks_delete"):
            op.execute(f"DROP TRIGGER count_{change}")
        return
    for name, table in _COUNTING_FUNCTIONS.items():
        op.execute(f"DROP TRIGGER {name} ON {table}")
        op.execute(f"DROP FUNCTION {name}()")
