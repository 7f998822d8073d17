"""The tables, typed. Instants are epoch microseconds UTC, as everywhere inside Kairos."""

from typing import Any

from sqlalchemy import JSON, BigInteger, Double, Index, Integer, MetaData, String, Text
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

# Ids sort and compare by code point on either database; PostgreSQL would otherwise follow the
# locale it was created with.
_Id = String(256).with_variant(String(256, collation="C"), "postgresql")
# SQLite numbers rows by itself only in a column declared INTEGER.
_Serial = BigInteger().with_variant(Integer, "sqlite")


class Table(DeclarativeBase):
    """The parent of every table; names its constraints, so that migrations can."""

    metadata = MetaData(
        naming_convention={
            "pk": "pk_%(table_name)s",
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_name)s",
        }
    )


class StoredEvent(Table):
    """One event of one user, kept forever unless the user is erased.

    `event_id` is the idempotency key: the caller's, or a hash of the event itself.
    """

    __tablename__ = "events"
    __table_args__ = (Index(None, "user_id", "at", "id"),)

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


class StoredItem(Table):
    """What callers said of an item. `search_title` is the title case-folded, for searching."""

    __tablename__ = "items"

    item_id: Mapped[str] = mapped_column(_Id, primary_key=True)
    title: Mapped[str | None] = mapped_column(Text)
    search_title: Mapped[str | None] = mapped_column(Text)
    categories: Mapped[list[str]] = mapped_column(JSON)
    available_from: Mapped[int | None] = mapped_column(BigInteger)
    available_until: Mapped[int | None] = mapped_column(BigInteger)
    properties: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    updated_at: Mapped[int] = mapped_column(BigInteger)
