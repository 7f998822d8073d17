"""Live item data over the catalogs of the served models."""

import asyncio
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from app.errors import ServiceError
from model.catalog import Catalog

_ALWAYS, _NEVER = np.iinfo(np.int64).min, np.iinfo(np.int64).max

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class OverlaidItem:
    """An item as it was last stored, or its deletion.

    Attributes:
        available_from: epoch microseconds; None for always.
        available_until: epoch microseconds, the first instant of unavailability; None for never.
        is_deleted: whether the item was deleted; it is then never recommended.
    """

    item_id: str
    title: str | None
    categories: tuple[str, ...]
    available_from: int | None
    available_until: int | None
    is_deleted: bool


@final
class ItemOverlayView:
    """The overlay arranged by the rows of one catalog. Immutable.

    For an item that was never stored, the catalog's title and categories apply.
    """

    def __init__(self, catalog: Catalog, items: Mapping[str, OverlaidItem]) -> None:
        self._catalog = catalog
        rows = len(catalog) + 1
        self._stored = {
            row: items[item_id]
            for row, item_id in enumerate(catalog.item_ids, start=1)
            if item_id in items
        }
        deleted = [row for row, item in self._stored.items() if item.is_deleted]
        self._deleted = np.array(deleted, dtype=np.int64)
        self._from: NDArray[np.int64] | None = None
        self._until: NDArray[np.int64] | None = None
        self._set_windows(self._stored)
        by_category: dict[str, list[int]] = {}
        for row in range(1, rows):
            # Catalogs and rows of earlier releases may repeat one.
            for category in dict.fromkeys(self.categories(row)):
                by_category.setdefault(category, []).append(row)
        self._by_category = {
            category: np.array(members, dtype=np.int64) for category, members in by_category.items()
        }

    def replace(
        self, items: Mapping[str, OverlaidItem], changed: Iterable[str]
    ) -> "ItemOverlayView":
        """Return a view of other items; takes time for the changed ones, not for all rows.

        Args:
            items: all items, by id.
            changed: the ids of those that are not what they were, or no longer there.
        """
        rows = {row: items.get(it) for it in changed if (row := self._catalog.find(it)) is not None}
        if not rows:
            return self
        view = copy(self)
        view._stored = self._stored | {row: item for row, item in rows.items() if item is not None}
        for row, item in rows.items():
            if item is None:
                view._stored.pop(row, None)
        now_deleted = [row for row, item in rows.items() if item is not None and item.is_deleted]
        kept = np.setdiff1d(self._deleted, np.array(list(rows), dtype=np.int64))
        view._deleted = np.union1d(kept, np.array(now_deleted, dtype=np.int64))
        view._set_windows(rows)
        view._move_between_categories(rows, self)
        return view

    def _set_windows(self, rows: Mapping[int, OverlaidItem | None]) -> None:
        """Set when the items of some rows are available, in arrays of this view alone."""
        bounded = any(
            item is not None
            and (item.available_from is not None or item.available_until is not None)
            for item in rows.values()
        )
        if self._from is None or self._until is None:
            if not bounded:
                return
            self._from = np.full(len(self._catalog) + 1, _ALWAYS, dtype=np.int64)
            self._until = np.full(len(self._catalog) + 1, _NEVER, dtype=np.int64)
        else:
            self._from, self._until = self._from.copy(), self._until.copy()
        for row, item in rows.items():
            begins = None if item is None else item.available_from
            ends = None if item is None else item.available_until
            self._from[row] = _ALWAYS if begins is None else begins
            self._until[row] = _NEVER if ends is None else ends

    def _move_between_categories(self, rows: Iterable[int], before: "ItemOverlayView") -> None:
        """Move some rows from their categories in an earlier view to those in this one."""
        left: dict[str, list[int]] = {}
        joined: dict[str, list[int]] = {}
        for row in rows:
            old, new = set(before.categories(row)), set(self.categories(row))
            for category in old - new:
                left.setdefault(category, []).append(row)
            for category in new - old:
                joined.setdefault(category, []).append(row)
        if not (left or joined):
            return
        self._by_category = before._by_category.copy()
        for category in left.keys() | joined.keys():
            # Sorted, so that both take the time of a copy.
            members = self._find_rows(category)
            members = np.delete(members, members.searchsorted(left.get(category, [])))
            added = np.array(sorted(joined.get(category, ())), dtype=np.int64)
            members = np.insert(members, members.searchsorted(added), added)
            if len(members):
                self._by_category[category] = members
            else:
                del self._by_category[category]

    def item_id(self, row: int) -> str:
        """Return the id of a row."""
        return self._catalog.item_id(row)

    def title(self, row: int) -> str | None:
        """Return the title of a row."""
        item = self._stored.get(row)
        return self._catalog.title(row) if item is None or item.title is None else item.title

    def categories(self, row: int) -> tuple[str, ...]:
        """Return the categories of a row."""
        item = self._stored.get(row)
        return self._catalog.categories[row - 1] if item is None else item.categories

    def select_allowed(
        self,
        at: int,
        *,
        any_categories: Sequence[str] = (),
        no_categories: Sequence[str] = (),
        available_only: bool = True,
    ) -> Mask | None:
        """Return the mask of rows that may be recommended at an instant; None if every row may.

        Args:
            at: epoch microseconds.
            any_categories: if not empty: only items of at least one of these.
            no_categories: no items of these.
            available_only: leave out items that are not available at `at`.
        """
        has_windows = available_only and self._from is not None and self._until is not None
        if not (any_categories or no_categories or has_windows or len(self._deleted)):
            return None
        allowed = np.full(len(self._catalog) + 1, not any_categories, dtype=np.bool_)
        for category in any_categories:
            allowed[self._find_rows(category)] = True
        for category in no_categories:
            allowed[self._find_rows(category)] = False
        if available_only and self._from is not None and self._until is not None:
            allowed &= (self._from <= at) & (at < self._until)
        allowed[self._deleted] = False
        allowed[0] = False
        return allowed

    def _find_rows(self, category: str) -> NDArray[np.int64]:
        return self._by_category.get(category, np.empty(0, dtype=np.int64))


class LastChange(NamedTuple):
    """The last change of any item that the database has committed.

    Attributes:
        number: the number that the database gave it; 0 before the first change.
        table: identifies the table of the counter: a restored one is another table.
    """

    number: int
    table: int

    def follows(self, earlier: "LastChange") -> bool:
        """Return whether the changes since `earlier` are those with larger numbers."""
        return self.table == earlier.table and self.number >= earlier.number


class ItemChanges(NamedTuple):
    """Items as they were read from the database.

    Attributes:
        last: the last change that is certainly among them or before them.
        items: the items that changed, deletions included.
        is_complete: whether these are all items, so that others are no longer stored.
        generation: of the overlay, before they were read.
    """

    last: LastChange
    items: Sequence[OverlaidItem]
    is_complete: bool
    generation: int


@final
class ItemOverlay:
    """The stored items of the open models, and a view of them for the catalog of each.

    Items that no open model knows are not kept: a caller may store millions of them. A model that
    is opened has its items read. Views are built when items change or a model is loaded, off the
    event loop; requests only look them up.

    Attributes:
        refresh_lock: held while the database is read and the result is applied.
        last_change: the last applied change; None before the first read.
        generation: how often a catalog was added: what was read before lacks its items.
    """

    def __init__(self, read_items: Callable[[Sequence[str]], Iterable[OverlaidItem]]) -> None:
        """Begin without items.

        Args:
            read_items: reads the stored items of some ids, deletions included; blocks. Any
                `ServiceError` of it means that all are read with the next refresh.
        """
        self._read_items = read_items
        self._items: dict[str, OverlaidItem] = {}
        self._catalogs: dict[str, Catalog] = {}
        self._views: dict[str, ItemOverlayView] = {}
        self._lock = threading.Lock()
        self._adding = threading.Lock()
        self.refresh_lock = asyncio.Lock()
        self.last_change: LastChange | None = None
        self.generation = 0

    def is_known(self, item_id: str) -> bool:
        """Return whether an open model has an item."""
        return any(item_id in catalog for catalog in self._catalogs.values())

    @property
    def has_catalogs(self) -> bool:
        """Whether any model is open, or is being opened."""
        return bool(self._catalogs)

    def apply(self, changes: ItemChanges) -> bool:
        """Apply changes that were read after `last_change`, and rebuild the views they concern.

        Returns:
            False, with nothing applied, if a catalog was added while they were read.
        """
        with self._lock:
            if changes.generation != self.generation:
                return False
            known = self._items
            read = {item.item_id: item for item in changes.items if self.is_known(item.item_id)}
            changed = {item_id for item_id, item in read.items() if known.get(item_id) != item}
            if changes.is_complete:
                changed |= known.keys() - read.keys()
            if changed:
                self._items = read if changes.is_complete else known | read
                self._views = {
                    version: view.replace(self._items, changed)
                    for version, view in self._views.items()
                }
            self.last_change = changes.last
            return True

    def add_catalog(self, version: str, catalog: Catalog) -> None:
        """Read the items of a model's catalog, before the model serves requests; blocks."""
        # One after the other: the view of the second may need items that the first one reads.
        with self._adding:
            self._add_catalog(version, catalog)

    def _add_catalog(self, version: str, catalog: Catalog) -> None:
        with self._lock:
            if version in self._catalogs:
                return
            # Those of closed models are not followed any more.
            self._items = {it: item for it, item in self._items.items() if self.is_known(it)}
            unread = [it for it in catalog.item_ids if not self.is_known(it)]
            self._catalogs = self._catalogs | {version: catalog}
            self.generation += 1
        try:
            read, is_complete = {item.item_id: item for item in self._read_items(unread)}, True
        except ServiceError:
            read, is_complete = {}, False
        with self._lock:
            if not is_complete:
                self.last_change = None
            # What a refresh has applied meanwhile is at least as new.
            self._items = read | self._items
            if version in self._catalogs:
                self._views = self._views | {version: ItemOverlayView(catalog, self._items)}

    def retain_versions(self, versions: Iterable[str]) -> None:
        """Drop the views of all other models."""
        kept = set(versions)
        with self._lock:
            self._catalogs = {v: c for v, c in self._catalogs.items() if v in kept}
            self._views = {v: view for v, view in self._views.items() if v in kept}

    def get_view(self, version: str, catalog: Catalog) -> ItemOverlayView:
        """Return the view of a model's catalog; build it if there is none."""
        view = self._views.get(version)
        return ItemOverlayView(catalog, self._items) if view is None else view
