"""The items callers told us of."""

import base64
import binascii
from typing import Any, final

from app.db.tables import StoredItem
from app.errors import ItemNotFoundError, UnprocessableError
from app.items.repository import ItemRepository
from app.items.schemas import Item, ItemBatch, ItemDescription, ItemPage, StoredItems
from app.parts import Parts
from app.wire import rfc_3339
from model.clock import now


@final
class ItemService:
    """Lists, finds and replaces items."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def page(self, *, search: str | None, cursor: str | None, limit: int) -> ItemPage:
        """One page of items.

        Raises:
            UnprocessableError: if the cursor is none of ours.
        """
        after = None if cursor is None else _after(cursor)
        folded = None if search is None else search.casefold()
        found = await self._parts.database.read(
            lambda session: ItemRepository(session).page(
                after=after, search=folded, limit=limit + 1
            )
        )
        shown = found[:limit]
        return ItemPage(
            items=tuple(_item(stored) for stored in shown),
            next_cursor=_cursor(shown[-1].item_id) if len(found) > limit else None,
        )

    async def find(self, item_id: str) -> Item:
        """One item.

        Raises:
            ItemNotFoundError: if nobody told us of it.
        """
        stored = await self._parts.database.read(
            lambda session: ItemRepository(session).find(item_id)
        )
        if stored is None:
            raise ItemNotFoundError(
                f"an item must be stored before it can be read, but {item_id!r} is not; "
                "store it with PUT /v1/items"
            )
        return _item(stored)

    async def put(self, batch: ItemBatch) -> StoredItems:
        """Create or replace items; returns after they are committed."""
        updated_at = now()
        rows = {item.item_id: _row(item, updated_at) for item in batch.items}
        await self._parts.database.write(
            lambda session: ItemRepository(session).put(list(rows.values()))
        )
        return StoredItems(stored=len(rows))


def _cursor(item_id: str) -> str:
    return base64.urlsafe_b64encode(item_id.encode()).decode().rstrip("=")


def _after(cursor: str) -> str:
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        item_id = base64.b64decode(padded, altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError) as error:
        item_id = ""
        cause: Exception | None = error
    else:
        cause = None
    if not item_id or "\0" in item_id:
        raise UnprocessableError(
            f"a cursor is the next_cursor of an earlier page, but got {cursor[:60]!r}; "
            "leave it out to begin at the first page"
        ) from cause
    return item_id


def _item(stored: StoredItem) -> Item:
    return Item(
        item_id=stored.item_id,
        title=stored.title,
        categories=stored.categories,
        available_from=_instant(stored.available_from),
        available_until=_instant(stored.available_until),
        properties=stored.properties,
        updated_at=rfc_3339(stored.updated_at),
    )


def _instant(instant: int | None) -> str | None:
    return None if instant is None else rfc_3339(instant)


def _row(item: ItemDescription, updated_at: int) -> dict[str, Any]:
    return {
        "item_id": item.item_id,
        "title": item.title,
        "search_title": None if item.title is None else item.title.casefold(),
        "categories": item.categories,
        "available_from": item.available_from,
        "available_until": item.available_until,
        "properties": item.properties,
        "updated_at": updated_at,
    }
