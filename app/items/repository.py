"""Items in the database."""

from collections.abc import Sequence
from typing import Any, final

from sqlalchemy import select
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
        """One item."""
        return self._session.get(StoredItem, item_id)

    def page(self, *, after: str | None, search: str | None, limit: int) -> Sequence[StoredItem]:
        """Items in order of id, those after `after` whose folded title contains `search`."""
        statement = select(StoredItem).order_by(StoredItem.item_id).limit(limit)
        if after is not None:
            statement = statement.where(StoredItem.item_id > after)
        if search:
            statement = statement.where(StoredItem.search_title.contains(search, autoescape=True))
        return self._session.scalars(statement).all()
