"""Stored items: reads, replaces and deletes them, and keeps the item overlay up to date."""

import asyncio
import base64
import binascii

from app.context import AppContext
from app.db.tables import StoredItem
from app.errors import (
    DatabaseUnavailableError,
    ItemNotFoundError,
    OverloadedError,
    UnprocessableError,
)
from app.http.types import format_instant, format_optional_instant
from app.items.repository import ItemRepository, ItemRow
from app.items.schemas import Item, ItemBatch, ItemDescription, ItemPage, StoredItems
from app.serving.item_overlay import ItemChanges, LastChange, OverlaidItem


async def list_items_page(
    context: AppContext, *, search: str | None, cursor: str | None, limit: int
) -> ItemPage:
    """List one page of items whose title contains `search`, in order of id.

    Raises:
        UnprocessableError: if the cursor is not the `next_cursor` of an earlier page.
        DatabaseUnavailableError: if the items cannot be read.
        OverloadedError: if too many requests are waiting.
    """
    after = None if cursor is None else _decode_cursor(cursor)
    folded = None if search is None else search.casefold()
    matches = await context.database.read(
        lambda session: ItemRepository(session).list_page(
            after=after, search=folded, limit=limit + 1
        )
    )
    page = matches[:limit]
    return ItemPage(
        items=tuple(_to_response(stored) for stored in page),
        next_cursor=_encode_cursor(page[-1].item_id) if len(matches) > limit else None,
    )


async def find_item(context: AppContext, item_id: str) -> Item:
    """Read one stored item.

    Raises:
        ItemNotFoundError: if it is not stored.
        DatabaseUnavailableError: if it cannot be read.
        OverloadedError: if too many requests are waiting.
    """
    stored = await context.database.read(lambda session: ItemRepository(session).find(item_id))
    if stored is None:
        raise _build_not_found_error(item_id)
    return _to_response(stored)


async def store_items(context: AppContext, batch: ItemBatch) -> StoredItems:
    """Create or replace items; return after the commit.

    Raises:
        DatabaseUnavailableError: if it is unknown whether they were stored; storing them again is
            safe.
        OverloadedError: if too many requests are waiting.
    """
    updated_at = context.clock.now()
    rows = {item.item_id: _to_row(item, updated_at) for item in batch.items}
    await context.database.write(lambda session: ItemRepository(session).put(list(rows.values())))
    await refresh_item_overlay(context)
    return StoredItems(stored=len(rows))


async def remove_item(context: AppContext, item_id: str) -> None:
    """Delete an item; it is not recommended until it is stored again.

    Raises:
        ItemNotFoundError: if it is not stored.
        DatabaseUnavailableError: if it is unknown whether it was deleted; deleting again is safe.
        OverloadedError: if too many requests are waiting.
    """
    at = context.clock.now()
    existed = await context.database.write(
        lambda session: ItemRepository(session).delete(item_id, at)
    )
    if not existed:
        raise _build_not_found_error(item_id)
    await refresh_item_overlay(context)


async def refresh_item_overlay(context: AppContext) -> None:
    """Apply the items that any process has stored or deleted since the last refresh.

    While the database is unavailable, the overlay stays as it is.
    """
    overlay = context.item_overlay
    # Sequentially: an older read must not be applied after a newer one.
    async with overlay.refresh_lock:
        applied = overlay.last_change
        try:
            changes = await context.database.read(
                lambda session: _read_changes(ItemRepository(session), applied), lane="control"
            )
        except (DatabaseUnavailableError, OverloadedError):
            return
        if changes is not None:
            await asyncio.to_thread(overlay.apply, changes)


def _read_changes(items: ItemRepository, applied: LastChange | None) -> ItemChanges | None:
    """Read the changes after the last applied one; None if there are none.

    Every item is read the first time, and again after a backup was restored: the counter then went
    back, or its table is a new one.
    """
    last = items.read_last_change()
    if last == applied:
        return None
    since = applied.number if applied is not None and last.follows(applied) else None
    changed = items.list_changed_after(since)
    return ItemChanges(last, [_to_overlaid(item) for item in changed], is_complete=since is None)


def _build_not_found_error(item_id: str) -> ItemNotFoundError:
    return ItemNotFoundError(
        f"an item must be stored before it can be read or deleted, but {item_id!r} is not; "
        "store it with PUT /v1/items"
    )


def _encode_cursor(item_id: str) -> str:
    return base64.urlsafe_b64encode(item_id.encode()).decode().rstrip("=")


def _decode_cursor(cursor: str) -> str:
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        item_id = base64.b64decode(padded, altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError) as error:
        raise _build_cursor_error(cursor) from error
    if not item_id or "\0" in item_id:
        raise _build_cursor_error(cursor)
    return item_id


def _build_cursor_error(cursor: str) -> UnprocessableError:
    return UnprocessableError(
        f"a cursor is the next_cursor of an earlier page, but got {cursor[:60]!r}; "
        "leave it out to begin at the first page"
    )


def _to_overlaid(stored: StoredItem) -> OverlaidItem:
    return OverlaidItem(
        item_id=stored.item_id,
        title=stored.title,
        categories=tuple(stored.categories),
        available_from=stored.available_from,
        available_until=stored.available_until,
        is_deleted=stored.deleted_at is not None,
    )


def _to_response(stored: StoredItem) -> Item:
    return Item(
        item_id=stored.item_id,
        title=stored.title,
        categories=stored.categories,
        available_from=format_optional_instant(stored.available_from),
        available_until=format_optional_instant(stored.available_until),
        properties=stored.properties,
        updated_at=format_instant(stored.updated_at),
    )


def _to_row(item: ItemDescription, updated_at: int) -> ItemRow:
    return ItemRow(
        item_id=item.item_id,
        title=item.title,
        categories=item.categories,
        updated_at=updated_at,
        available_from=item.available_from,
        available_until=item.available_until,
        properties=item.properties,
    )
