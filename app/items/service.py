"""Stored items: reads, replaces and deletes them, and keeps the item overlay up to date."""

import asyncio
import base64
import binascii
from collections.abc import Callable, Sequence
from functools import partial
from typing import final

import structlog

from app.context import AppContext
from app.db.database import Database
from app.db.tables import StoredItem
from app.errors import (
    DatabaseUnavailableError,
    ItemNotFoundError,
    OverloadedError,
    UnprocessableError,
)
from app.http.types import format_instant, format_optional_instant
from app.items.repository import ItemRepository, ItemRow, ItemState
from app.items.schemas import Item, ItemBatch, ItemDescription, ItemPage, StoredItems
from app.serving.item_overlay import ItemChanges, LastChange, OverlaidItem

_ITEMS_PER_PAGE = 5_000
"""Items that one transaction reads to follow the changes: tens of milliseconds."""
_IDS_PER_READ = 1_000
_MOST_READS = 3

_log = structlog.get_logger()


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
    async with context.overviews.take_turn():
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
    await _refresh_after_commit(context)
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
    await _refresh_after_commit(context)


async def refresh_item_overlay(context: AppContext, *, page_size: int = _ITEMS_PER_PAGE) -> None:
    """Apply the items that any process has stored or deleted since the last refresh.

    Every item is read again after a backup was restored: the counter then went back, or its table
    is a new one. If the read fails, the overlay stays as it is.

    Args:
        page_size: items that one transaction reads, so that none exceeds its deadline.

    Raises:
        DatabaseUnavailableError: if the items cannot be read.
        OverloadedError: if too many calls wait for the database.
    """
    overlay = context.item_overlay
    # Sequentially: an older read must not be applied after a newer one.
    async with overlay.refresh_lock:
        # Again if a model was opened meanwhile, up to a limit: the next refresh tries again.
        for _ in range(_MOST_READS):
            changes = await _read_changes(context, page_size)
            if changes is None or await asyncio.to_thread(overlay.apply, changes):
                return


async def _read_changes(context: AppContext, page_size: int) -> ItemChanges | None:
    """Read what changed since the last refresh; None if nothing has."""
    overlay = context.item_overlay
    applied, generation = overlay.last_change, overlay.generation
    # Before the items: what changes meanwhile has a larger number, and is read again.
    last = await context.database.read(
        lambda session: ItemRepository(session).read_last_change(), lane="control"
    )
    if last == applied:
        return None
    if not overlay.has_catalogs:
        return ItemChanges(last, [], is_complete=True, generation=generation)
    reader = _ItemReader(context, page_size, last)
    if applied is not None and last.follows(applied):
        changed = await reader.read_changed(applied.number, last.number)
        return ItemChanges(last, list(changed.values()), is_complete=False, generation=generation)
    every = await reader.read_all()
    # What changed meanwhile may be on pages that were read before.
    newest = await reader.read_newest()
    every |= await reader.read_changed(last.number, newest.number)
    return ItemChanges(newest, list(every.values()), is_complete=True, generation=generation)


def build_item_reader(database: Database) -> Callable[[Sequence[str]], list[OverlaidItem]]:
    """Build a function that reads the stored items of some ids, deletions included; it blocks."""

    def read_page(item_ids: Sequence[str]) -> list[ItemState]:
        return database.read_blocking(lambda session: ItemRepository(session).list_states(item_ids))

    def read(item_ids: Sequence[str]) -> list[OverlaidItem]:
        found: list[OverlaidItem] = []
        for first in range(0, len(item_ids), _IDS_PER_READ):
            page = item_ids[first : first + _IDS_PER_READ]
            found += map(_to_overlaid, read_page(page))
        return found

    return read


async def _refresh_after_commit(context: AppContext) -> None:
    """Refresh the overlay for a request whose change is committed, which must not fail any more."""
    try:
        await refresh_item_overlay(context)
    except (DatabaseUnavailableError, OverloadedError) as error:
        # The periodic refresh tries again, and reports what keeps failing.
        _log.info("item_refresh_postponed", error=str(error))


@final
class _ItemReader:
    """Reads the items that an open model has, in pages, each in a transaction of its own."""

    def __init__(self, context: AppContext, page_size: int, last: LastChange) -> None:
        """Begin after the last change `last`, which was read from the database that all pages need.

        Args:
            page_size: items of a page.
        """
        self._database = context.database
        self._is_known = context.item_overlay.is_known
        self._page_size = page_size
        self._last = last

    async def read_all(self) -> dict[str, OverlaidItem]:
        """Read every item, by id.

        Raises:
            DatabaseUnavailableError: if a page cannot be read, or is of another database.
            OverloadedError: if too many calls wait for the database.
        """
        found: dict[str, OverlaidItem] = {}
        after: str | None = None
        while page := await self._read_page(partial(self._list_by_id, after)):
            found |= self._select_known(page)
            after = page[-1].item_id
        return found

    async def read_newest(self) -> LastChange:
        """Read the last change now.

        Raises:
            DatabaseUnavailableError: if it cannot be read, or is of another database.
            OverloadedError: if too many calls wait for the database.
        """
        return await self._database.read(
            lambda session: self._read_newest(ItemRepository(session)), lane="control"
        )

    async def read_changed(self, after: int, until: int) -> dict[str, OverlaidItem]:
        """Read the items whose last change has a number after one and up to another, by id.

        Some of the later changes are among them, too. An item that changes during the read may
        be missing; its number is then larger than `until`.

        Raises:
            DatabaseUnavailableError: if a page cannot be read, or is of another database.
            OverloadedError: if too many calls wait for the database.
        """
        found: dict[str, OverlaidItem] = {}
        # Not up to the last page: writers that never pause would keep the read from ending.
        while after < until and (
            page := await self._read_page(partial(self._list_by_change, after))
        ):
            found |= self._select_known(page)
            after = page[-1].change_number or until
        return found

    def _select_known(self, page: list[ItemState]) -> dict[str, OverlaidItem]:
        return {
            state.item_id: _to_overlaid(state) for state in page if self._is_known(state.item_id)
        }

    async def _read_page(
        self, read: Callable[[ItemRepository], list[ItemState]]
    ) -> list[ItemState]:
        def work(items: ItemRepository) -> list[ItemState]:
            self._read_newest(items)
            return read(items)

        return await self._database.read(
            lambda session: work(ItemRepository(session)), lane="control"
        )

    def _read_newest(self, items: ItemRepository) -> LastChange:
        newest = items.read_last_change()
        if not newest.follows(self._last):
            raise DatabaseUnavailableError(
                "all items must be read from one database, but it was restored, or another server "
                "answers, which lags behind; they are read again"
            )
        return newest

    def _list_by_id(self, after: str | None, items: ItemRepository) -> list[ItemState]:
        return items.list_states_by_id(after, self._page_size)

    def _list_by_change(self, number: int, items: ItemRepository) -> list[ItemState]:
        return items.list_states_by_change(number, self._page_size)


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


def _to_overlaid(stored: ItemState) -> OverlaidItem:
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
