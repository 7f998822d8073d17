"""The mapping between item ids and rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.catalog import PADDING_ROW, Catalog
from model.errors import UnknownItemError

ids = st.lists(st.text(max_size=4), min_size=1, max_size=8, unique=True)


@given(item_ids=ids)
def test_ids_and_rows_map_to_each_other(item_ids: list[str]) -> None:
    catalog = Catalog.from_ids(item_ids)
    rows = [catalog.row(item_id) for item_id in item_ids]
    assert rows == list(range(1, len(item_ids) + 1))
    assert [catalog.item_id(row) for row in rows] == item_ids
    assert PADDING_ROW not in rows


def test_an_unknown_item_raises_an_error_with_its_id() -> None:
    with pytest.raises(UnknownItemError, match=r"'zebra' is not among its 2"):
        Catalog.from_ids(["a", "b"]).row("zebra")


def test_find_returns_none_for_an_unknown_item() -> None:
    catalog = Catalog.from_ids(["a", "b"])
    assert catalog.find("zebra") is None
    assert catalog.find("b") == 2
    assert "b" in catalog
    assert "zebra" not in catalog


def test_rows_skip_unknown_ids_and_keep_the_order() -> None:
    assert Catalog.from_ids(["a", "b", "c"]).rows(["c", "zebra", "a", "c"]).tolist() == [3, 1, 3]


def test_repeated_ids_are_rejected() -> None:
    with pytest.raises(ValueError, match="must be distinct"):
        Catalog.from_ids(["a", "a"])


def test_columns_of_different_lengths_are_rejected() -> None:
    counts = np.zeros(2, dtype=np.int64)
    with pytest.raises(ValueError, match="'titles': 1"):
        Catalog(("a", "b"), ("A",), ((), ()), counts, counts)


def test_items_rank_by_recent_then_all_time_popularity() -> None:
    catalog = Catalog(
        item_ids=("old", "new", "newer", "never"),
        titles=(None,) * 4,
        categories=((),) * 4,
        popularity=np.array([90, 5, 6, 0]),
        recent_popularity=np.array([0, 3, 3, 0]),
    )
    order = [catalog.item_id(row) for row in catalog.rows_by_popularity.tolist()]
    assert order == ["newer", "new", "old", "never"]
