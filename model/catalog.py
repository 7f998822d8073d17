"""The bijection between outside item ids and the rows of the item table."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from model.errors import UnknownItemError

PADDING_ROW = 0


@dataclass(frozen=True)
class Catalog:
    """The items a model knows. Row 0 is padding; `item_ids[p]` is row `p + 1`.

    Attributes:
        item_ids: distinct ids.
        titles: a readable name for each item, or None.
        categories: the categories of each item, possibly none.
        popularity: events per item over the training data.
        recent_popularity: events per item over the last seven days of the training data.
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
                f"every column of a catalogue needs the same length, however: {lengths}"
            )
        if len(self._rows) != len(self.item_ids):
            raise ValueError("item ids of a catalogue must be distinct; drop the repeated ones")

    @classmethod
    def of(cls, item_ids: Sequence[str]) -> "Catalog":
        """A catalogue of bare ids, without titles, categories or counts."""
        nothing = np.zeros(len(item_ids), dtype=np.int64)
        return cls(
            item_ids=tuple(item_ids),
            titles=(None,) * len(item_ids),
            categories=((),) * len(item_ids),
            popularity=nothing,
            recent_popularity=nothing,
        )

    def __len__(self) -> int:
        return len(self.item_ids)

    def __contains__(self, item_id: object) -> bool:
        return item_id in self._rows

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {item_id: row for row, item_id in enumerate(self.item_ids, start=1)}

    def row(self, item_id: str) -> int:
        """The row of an item.

        Raises:
            UnknownItemError: if the catalogue does not hold it.
        """
        row = self._rows.get(item_id)
        if row is None:
            raise UnknownItemError(
                f"the catalogue must hold an item before it can be used, but {item_id!r} is not "
                f"among its {len(self)}; retrain with events of that item"
            )
        return row

    def find(self, item_id: str) -> int | None:
        """The row of an item, or None where the catalogue does not hold it."""
        return self._rows.get(item_id)

    def rows(self, item_ids: Iterable[str]) -> NDArray[np.int64]:
        """The rows of those of the ids that the catalogue holds, in order."""
        known = (self._rows.get(item_id) for item_id in item_ids)
        return np.array([row for row in known if row is not None], dtype=np.int64)

    def item_id(self, row: int) -> str:
        """The outside id of a row."""
        return self.item_ids[row - 1]

    def title(self, row: int) -> str | None:
        """The readable name of a row, where there is one."""
        return self.titles[row - 1]

    @cached_property
    def rows_by_popularity(self) -> NDArray[np.int64]:
        """All rows, most popular in the last seven days first, all-time counts breaking ties."""
        order = np.lexsort((-self.popularity, -self.recent_popularity))
        return order.astype(np.int64) + 1
