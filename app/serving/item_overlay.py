"""Live item data over the catalogs of the served models."""

import asyncio
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

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
        bounded = {
            row: item
            for row, item in self._stored.items()
            if item.available_from is not None or item.available_until is not None
        }
        if bounded:
            self._from = np.full(rows, _ALWAYS, dtype=np.int64)
            self._until = np.full(rows, _NEVER, dtype=np.int64)
            for row, item in bounded.items():
                if item.available_from is not None:
                    self._from[row] = item.available_from
                if item.available_until is not None:
                    self._until[row] = item.available_until
        by_category: dict[str, list[int]] = {}
        for row in range(1, rows):
            for category in self.categories(row):
                by_category.setdefault(category, []).append(row)
        self._by_category = {
            category: np.array(members, dtype=np.int64) for category, members in by_category.items()
        }

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
    """

    last: LastChange
    items: Sequence[OverlaidItem]
    is_complete: bool


@final
class ItemOverlay:
    """The stored items, and a view of them for the catalog of each open model.

    Views are built when items change or a model is loaded, off the event loop; requests only look
    them up.

    Attributes:
        refresh_lock: held while the database is read and the result is applied.
        last_change: the last applied change; None before the first read.
    """

    def __init__(self) -> None:
        self._items: dict[str, OverlaidItem] = {}
        self._catalogs: dict[str, Catalog] = {}
        self._views: dict[str, ItemOverlayView] = {}
        self._lock = threading.Lock()
        self.refresh_lock = asyncio.Lock()
        self.last_change: LastChange | None = None

    def apply(self, changes: ItemChanges) -> None:
        """Apply changes that were read after `last_change`, and rebuild the views they concern."""
        with self._lock:
            known = self._items
            changed = {item.item_id for item in changes.items if known.get(item.item_id) != item}
            read = {item.item_id: item for item in changes.items}
            if changes.is_complete:
                changed |= known.keys() - read.keys()
            if changed:
                self._items = read if changes.is_complete else known | read
                self._rebuild_views(changed)
            self.last_change = changes.last

    def add_catalog(self, version: str, catalog: Catalog) -> None:
        """Build the view of a model's catalog, before the model serves requests."""
        with self._lock:
            if version not in self._catalogs:
                self._views = self._views | {version: ItemOverlayView(catalog, self._items)}
                self._catalogs[version] = catalog

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

    def _rebuild_views(self, changed: Collection[str]) -> None:
        self._views = {
            version: ItemOverlayView(catalog, self._items)
            if any(item_id in catalog for item_id in changed)
            else self._views[version]
            for version, catalog in self._catalogs.items()
        }
