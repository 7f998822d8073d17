"""The mapping between external item ids and the rows of the item table."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from model.errors import UnknownItemError

PADDING_ROW = 0

RECENT_DAYS = 7
"""Days before the last event in which events are recent."""


@dataclass(frozen=True)
class Catalog:
    """The items of a model. Row 0 is padding; `item_ids[p]` is row `p + 1`.

    Attributes:
        item_ids: distinct ids.
        titles: a readable name for each item, or None.
        categories: the categories of each item, possibly none.
        popularity: events per item in the training data.
        recent_popularity: events per item in the `RECENT_DAYS` up to the last event of the training
            data; a running service counts its own events, too.

    Raises:
        ValueError: if the columns differ in length or item ids repeat.
    """

    item_ids: tuple[str, ...]
    titles: tuple[str | None, ...]
    categories: tuple[tuple[str, ...], ...]
    popularity: NDArray[np.int64] = field(repr=False)
    recent_popularity: NDArray[np.int64] = field(repr=False)

    def __post_init__(self) -> None:
        lengths = {
            "item_ids": len(self.item_ids),
            "titles": len(self.titles),
            "categories": len(self.categories),
            "popularity": len(self.popularity),
            "recent_popularity": len(self.recent_popularity),
        }
        if len(set(lengths.values())) != 1:
            raise ValueError(
                f"every column of a catalog needs the same length, but they have {lengths}; "
                "pass one value per item"
            )
        if len(self._rows) != len(self.item_ids):
            raise ValueError(
                f"item ids of a catalog must be distinct, but {len(self.item_ids)} ids hold only "
                f"{len(self._rows)} different ones; drop the repeated ones"
            )

    @classmethod
    def from_ids(cls, item_ids: Sequence[str]) -> "Catalog":
        """Build a catalog of bare ids, without titles, categories or counts."""
        zeros = np.zeros(len(item_ids), dtype=np.int64)
        return cls(
            item_ids=tuple(item_ids),
            titles=(None,) * len(item_ids),
            categories=((),) * len(item_ids),
            popularity=zeros,
            recent_popularity=zeros,
        )

    def __len__(self) -> int:
        return len(self.item_ids)

    def __contains__(self, item_id: object) -> bool:
        return item_id in self._rows

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {item_id: row for row, item_id in enumerate(self.item_ids, start=1)}

    def row(self, item_id: str) -> int:
        """Return the row of an item.

        Raises:
            UnknownItemError: if the item is not in the catalog.
        """
        row = self._rows.get(item_id)
        if row is None:
            raise UnknownItemError(
                f"an item must be in the model's catalog, but {item_id!r} is not among its "
                f"{len(self)} items; retrain with events of that item"
            )
        return row

    def find(self, item_id: str) -> int | None:
        """Return the row of an item, or None if it is not in the catalog."""
        return self._rows.get(item_id)

    def rows(self, item_ids: Iterable[str]) -> NDArray[np.int64]:
        """Return the rows of the ids that are in the catalog, in the order of the ids."""
        known = (self._rows.get(item_id) for item_id in item_ids)
        return np.array([row for row in known if row is not None], dtype=np.int64)

    def item_id(self, row: int) -> str:
        """Return the external id of a row."""
        return self.item_ids[row - 1]

    def title(self, row: int) -> str | None:
        """Return the readable name of a row, or None."""
        return self.titles[row - 1]

    @cached_property
    def rows_by_popularity(self) -> NDArray[np.int64]:
        """All rows by recent popularity, most popular first; ties by all-time popularity."""
        order = np.lexsort((-self.popularity, -self.recent_popularity))
        return order.astype(np.int64) + 1
