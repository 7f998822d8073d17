"""The items callers told us of."""

import asyncio
import base64
import binascii
from typing import Any, final

from app.context import AppContext
from app.db.tables import StoredItem
from app.errors import (
    DatabaseUnavailableError,
    ItemNotFoundError,
    OverloadedError,
    UnprocessableError,
)
from app.http.types import format_instant
from app.items.repository import ItemRepository
from app.items.schemas import Item, ItemBatch, ItemDescription, ItemPage, StoredItems
from app.serving.item_overlay import OverlaidItem, Updates
from model.clock import MICROSECONDS_PER_SECOND, now

_OVERLAP = 30 * MICROSECONDS_PER_SECOND


@final
class ItemService:
    """Lists, finds and replaces items."""

    def __init__(self, context: AppContext) -> None:
        self._context = context

    async def page(self, *, search: str | None, cursor: str | None, limit: int) -> ItemPage:
        """One page of items.

        Raises:
            UnprocessableError: if the cursor is none of ours.
        """
        after = None if cursor is None else _after(cursor)
        folded = None if search is None else search.casefold()
        found = await self._context.database.read(
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
        stored = await self._context.database.read(
            lambda session: ItemRepository(session).find(item_id)
        )
        if stored is None:
            raise _unknown(item_id)
        return _item(stored)

    async def put(self, batch: ItemBatch) -> StoredItems:
        """Create or replace items; returns after they are committed."""
        updated_at = now()
        rows = {item.item_id: _row(item, updated_at) for item in batch.items}
        await self._context.database.write(
            lambda session: ItemRepository(session).put(list(rows.values()))
        )
        await self.refresh_shelf()
        return StoredItems(stored=len(rows))

    async def delete(self, item_id: str) -> None:
        """Forget an item; it is not recommended again until it is stored anew.

        Raises:
            ItemNotFoundError: if nobody told us of it.
        """
        at = now()
        was_there = await self._context.database.write(
            lambda session: ItemRepository(session).delete(item_id, at)
        )
        if not was_there:
            raise _unknown(item_id)
        await self.refresh_shelf()

    async def refresh_shelf(self) -> None:
        """Take over what was said of items since the last look, by whichever process.

        While the database does not answer, what was known last holds.
        """
        shelf = self._context.item_overlay
        # One after the other: what was read first must not be put on the shelf last.
        async with shelf.refreshing:
            # Commits become visible later than their stamp says, and clocks of processes differ.
            since = shelf.latest_update - _OVERLAP
            try:
                updates, changed = await self._context.database.read(
                    lambda session: _changes(ItemRepository(session), since, shelf.read_last)
                )
            except (DatabaseUnavailableError, OverloadedError):
                return
            if changed:
                await asyncio.to_thread(shelf.put, changed)
            shelf.read_last = updates


def _changes(
    items: ItemRepository, since: int, known: Updates | None
) -> tuple[Updates | None, list[OverlaidItem]]:
    """The items that changed; none where they are those known, as nearly every time."""
    # At first all of them, which need no telling apart.
    updates = items.updates_since(since) if since > 0 else None
    if updates is not None and updates == known:
        return updates, []
    return updates, [_shelved(stored) for stored in items.changed_since(since)]


def _unknown(item_id: str) -> ItemNotFoundError:
    return ItemNotFoundError(
        f"an item must be stored before it can be read or deleted, but {item_id!r} is not; "
        "store it with PUT /v1/items"
    )


def _shelved(stored: StoredItem) -> OverlaidItem:
    return OverlaidItem(
        item_id=stored.item_id,
        title=stored.title,
        categories=tuple(stored.categories),
        available_from=stored.available_from,
        available_until=stored.available_until,
        is_deleted=stored.deleted_at is not None,
        updated_at=stored.updated_at,
    )


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
        updated_at=format_instant(stored.updated_at),
    )


def _instant(instant: int | None) -> str | None:
    return None if instant is None else format_instant(instant)


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
        "deleted_at": None,
    }
