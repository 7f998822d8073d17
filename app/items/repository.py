"""Items in the database."""

from collections.abc import Sequence
from typing import Any, final

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from app.db.insert import insert_into
from app.db.tables import StoredItem

_REPLACED = (
    "title",
    "search_title",
    "categories",
    "available_from",
    "available_until",
    "properties",
    "updated_at",
    "deleted_at",
)


@final
class ItemRepository:
    """Reads and replaces items within one transaction, which belongs to the caller."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def put(self, rows: Sequence[dict[str, Any]]) -> None:
        """Create or replace items; ids must be distinct."""
        if not rows:
            return
        statement = insert_into(self._session, StoredItem)
        replaced = {column: statement.excluded[column] for column in _REPLACED}
        self._session.execute(
            statement.on_conflict_do_update(index_elements=["item_id"], set_=replaced), rows
        )

    def find(self, item_id: str) -> StoredItem | None:
        """One item that was not deleted."""
        stored = self._session.get(StoredItem, item_id)
        return None if stored is None or stored.deleted_at is not None else stored

    def changed_since(self, updated_at: int) -> Sequence[StoredItem]:
        """Items described or deleted at `updated_at` or later."""
        return self._session.scalars(
            select(StoredItem).where(StoredItem.updated_at >= updated_at)
        ).all()

    def delete(self, item_id: str, at: int) -> bool:
        """Forget all that was said of an item but that it is gone; answers whether it was there."""
        nothing = dict.fromkeys(
            ("title", "search_title", "available_from", "available_until", "properties")
        )
        deleted = self._session.execute(
            update(StoredItem)
            .where(StoredItem.item_id == item_id, StoredItem.deleted_at.is_(None))
            .values(**nothing, categories=[], updated_at=at, deleted_at=at)
            .returning(StoredItem.item_id)
        )
        return deleted.first() is not None

    def page(self, *, after: str | None, search: str | None, limit: int) -> Sequence[StoredItem]:
        """Items in order of id, those after `after` whose folded title contains `search`."""
        statement = (
            select(StoredItem)
            .where(StoredItem.deleted_at.is_(None))
            .order_by(StoredItem.item_id)
            .limit(limit)
        )
        if after is not None:
            statement = statement.where(StoredItem.item_id > after)
        if search:
            statement = statement.where(StoredItem.search_title.contains(search, autoescape=True))
        return self._session.scalars(statement).all()
