"""The tables. Instants are epoch microseconds, UTC."""

from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Double,
    Index,
    Integer,
    MetaData,
    String,
    Text,
    false,
    text,
    true,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

# Ids sort and compare by code point on both databases; PostgreSQL would otherwise use the locale
# of the database.
_Id = String(256).with_variant(String(256, collation="C"), "postgresql")
# SQLite generates ids only for a column declared INTEGER.
_Serial = BigInteger().with_variant(Integer, "sqlite")


class Table(DeclarativeBase):
    """The base of every table; names constraints, so that migrations can refer to them."""

    metadata = MetaData(
        naming_convention={
            "pk": "pk_%(table_name)s",
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_name)s",
        }
    )


class StoredEvent(Table):
    """One event of one user, kept forever unless the user is erased.

    `event_id` is the idempotency key: the caller's, or a hash of the event itself. Of a sender
    whose ids must not collide with others it is a hash, and `sender_event_id` that sender's id.
    """

    __tablename__ = "events"
    __table_args__ = (
        Index(None, "user_id", "at", "id"),
        Index(None, "item_id", "at", "action"),
        Index(None, "at", "item_id", "action"),
        Index(
            None,
            "recommendation_id",
            sqlite_where=text("recommendation_id IS NOT NULL"),
            postgresql_where=text("recommendation_id IS NOT NULL"),
        ),
    )

    id: Mapped[int] = mapped_column(_Serial, primary_key=True)
    event_id: Mapped[str] = mapped_column(_Id, unique=True)
    user_id: Mapped[str] = mapped_column(_Id)
    item_id: Mapped[str] = mapped_column(_Id)
    action: Mapped[str] = mapped_column(String(64))
    at: Mapped[int] = mapped_column(BigInteger)
    value: Mapped[float | None] = mapped_column(Double)
    recommendation_id: Mapped[str | None] = mapped_column(_Id)
    properties: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    received_at: Mapped[int] = mapped_column(BigInteger)
    sender_event_id: Mapped[str | None] = mapped_column(_Id)


class StoredItem(Table):
    """A stored item. `search_title` is the case-folded title, for searching.

    A deleted item keeps its row with `deleted_at` set and its data removed, so that every process
    reads the deletion. Triggers set `change_number` to the next number of `ChangeNumber`, whichever
    process changes the row; it is null for an item that has not changed since migration 0005.
    """

    __tablename__ = "items"
    __table_args__ = (Index(None, "updated_at"), Index(None, "change_number"))

    item_id: Mapped[str] = mapped_column(_Id, primary_key=True)
    title: Mapped[str | None] = mapped_column(Text)
    search_title: Mapped[str | None] = mapped_column(Text)
    categories: Mapped[list[str]] = mapped_column(JSON)
    available_from: Mapped[int | None] = mapped_column(BigInteger)
    available_until: Mapped[int | None] = mapped_column(BigInteger)
    properties: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    updated_at: Mapped[int] = mapped_column(BigInteger)
    deleted_at: Mapped[int | None] = mapped_column(BigInteger)
    change_number: Mapped[int | None] = mapped_column(BigInteger)


class ChangeNumber(Table):
    """The last number given to a change of a table. Unlike clocks, it orders changes by commit."""

    __tablename__ = "change_numbers"

    name: Mapped[str] = mapped_column(String(16), primary_key=True)
    last: Mapped[int] = mapped_column(BigInteger)


class StoredRecommendation(Table):
    """An impression: the items of one response, to attribute later events to a model version.

    Triggers keep `clicked_at` and `ImpressionCount`, whichever process writes: an impression is
    clicked by an event that names it and an item that it showed, of the user that it was shown to;
    one without a user by anybody's. `clicked_at` is the instant of such an event. Only impressions
    from before migration 0005 are not counted yet.
    """

    __tablename__ = "recommendations"
    __table_args__ = (
        Index(None, "user_id"),
        Index(None, "model_version", "at"),
        Index(None, "at"),
        Index(
            "ix_recommendations_uncounted",
            "model_version",
            sqlite_where=text("NOT is_counted"),
            postgresql_where=text("NOT is_counted"),
        ),
    )

    recommendation_id: Mapped[str] = mapped_column(_Id, primary_key=True)
    user_id: Mapped[str | None] = mapped_column(_Id)
    model_version: Mapped[str] = mapped_column(String(64))
    at: Mapped[int] = mapped_column(BigInteger)
    fallback: Mapped[str | None] = mapped_column(String(16))
    item_ids: Mapped[list[str]] = mapped_column(JSON)
    clicked_at: Mapped[int | None] = mapped_column(BigInteger)
    is_counted: Mapped[bool] = mapped_column(Boolean, server_default=false())


IS_UNCOUNTED = text("NOT recommendations.is_counted")
"""As the index of uncounted impressions has it; SQLAlchemy writes a comparison on SQLite."""


class ImpressionCount(Table):
    """The stored impressions of a model version on one UTC day (days since 1970), and the clicked.

    Triggers keep it equal to a count of the rows of `StoredRecommendation` with `is_counted`.
    """

    __tablename__ = "impression_counts"

    model_version: Mapped[str] = mapped_column(String(64), primary_key=True)
    day: Mapped[int] = mapped_column(Integer, primary_key=True)
    shown: Mapped[int] = mapped_column(BigInteger)
    clicked: Mapped[int] = mapped_column(BigInteger)


class StoredKey(Table):
    """An API key: its SHA-256, never the key itself. Revoked keys stay, as a record.

    With a `user_prefix` it reaches only users whose ids begin with that.
    """

    __tablename__ = "api_keys"

    key_id: Mapped[str] = mapped_column(String(16), primary_key=True)
    name: Mapped[str] = mapped_column(String(128))
    role: Mapped[str] = mapped_column(String(16))
    digest: Mapped[str] = mapped_column(String(64))
    requests_per_second: Mapped[float | None] = mapped_column(Double)
    created_at: Mapped[int] = mapped_column(BigInteger)
    expires_at: Mapped[int | None] = mapped_column(BigInteger)
    revoked_at: Mapped[int | None] = mapped_column(BigInteger)
    user_prefix: Mapped[str | None] = mapped_column(_Id)
    may_list_users: Mapped[bool] = mapped_column(Boolean, server_default=true())


class RateBudget(Table):
    """The token bucket of a key that all processes share, as of an instant; see `SharedLimiter`."""

    __tablename__ = "rate_budgets"

    key_id: Mapped[str] = mapped_column(String(16), primary_key=True)
    tokens: Mapped[float] = mapped_column(Double)
    at: Mapped[int] = mapped_column(BigInteger)


class RateShare(Table):
    """The requests with a key that came to a process between its last two settlements."""

    __tablename__ = "rate_shares"

    key_id: Mapped[str] = mapped_column(String(16), primary_key=True)
    process: Mapped[str] = mapped_column(String(16), primary_key=True)
    arrived: Mapped[int] = mapped_column(BigInteger)
    at: Mapped[int] = mapped_column(BigInteger)


class ErasedUser(Table):
    """The SHA-256 of an erased user's id, to exclude the user's events from later imports."""

    __tablename__ = "erased_users"

    digest: Mapped[str] = mapped_column(String(64), primary_key=True)
    erased_at: Mapped[int] = mapped_column(BigInteger)


class ModelChange(Table):
    """A change of the served models: author, instant, reason, versions. Rows are never altered."""

    __tablename__ = "model_changes"
    __table_args__ = (Index(None, "at"),)

    id: Mapped[int] = mapped_column(_Serial, primary_key=True)
    at: Mapped[int] = mapped_column(BigInteger)
    actor: Mapped[str] = mapped_column(String(160))
    change: Mapped[str] = mapped_column(String(16))
    version: Mapped[str | None] = mapped_column(String(64))
    previous_version: Mapped[str | None] = mapped_column(String(64))
    reason: Mapped[str | None] = mapped_column(Text)
    detail: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))


class TrainingRun(Table):
    """A run of the retraining job, with its gate's decision."""

    __tablename__ = "training_runs"
    __table_args__ = (Index(None, "started_at"), Index(None, "result"))

    run_id: Mapped[str] = mapped_column(String(64), primary_key=True)
    started_at: Mapped[int] = mapped_column(BigInteger)
    finished_at: Mapped[int | None] = mapped_column(BigInteger)
    result: Mapped[str] = mapped_column(String(16))
    champion: Mapped[str | None] = mapped_column(String(64))
    candidate: Mapped[str | None] = mapped_column(String(64))
    reason: Mapped[str | None] = mapped_column(Text)
    report: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))


class AuditRecord(Table):
    """An act that must stay known: who did what, when. Rows are never altered, and name no user."""

    __tablename__ = "audit_records"
    __table_args__ = (Index(None, "at"),)

    id: Mapped[int] = mapped_column(_Serial, primary_key=True)
    at: Mapped[int] = mapped_column(BigInteger)
    actor: Mapped[str] = mapped_column(String(160))
    action: Mapped[str] = mapped_column(String(32))
    detail: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
