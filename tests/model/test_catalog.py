import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.catalog import PADDING_ROW, Catalog
from model.errors import UnknownItemError

ids = st.lists(st.text(max_size=4), min_size=1, max_size=8, unique=True)


@given(item_ids=ids)
def test_ids_and_rows_are_two_names_for_one_thing(item_ids: list[str]) -> None:
    catalog = Catalog.from_ids(item_ids)
    rows = [catalog.row(item_id) for item_id in item_ids]
    assert rows == list(range(1, len(item_ids) + 1))
    assert [catalog.item_id(row) for row in rows] == item_ids
    assert PADDING_ROW not in rows


def test_an_unknown_item_is_refused_by_name() -> None:
    with pytest.raises(UnknownItemError, match=r"'zebra' is not among its 2"):
        Catalog.from_ids(["a", "b"]).row("zebra")


def test_an_unknown_item_can_be_looked_for_without_an_error() -> None:
    catalog = Catalog.from_ids(["a", "b"])
    assert catalog.find("zebra") is None
    assert catalog.find("b") == 2
    assert "b" in catalog
    assert "zebra" not in catalog


def test_rows_of_many_ids_skip_the_unknown_and_keep_their_order() -> None:
    assert Catalog.from_ids(["a", "b", "c"]).rows(["c", "zebra", "a", "c"]).tolist() == [3, 1, 3]


def test_repeated_ids_are_refused() -> None:
    with pytest.raises(ValueError, match="must be distinct"):
        Catalog.from_ids(["a", "a"])


def test_columns_of_other_lengths_are_refused_by_length() -> None:
    counts = np.zeros(2, dtype=np.int64)
    with pytest.raises(ValueError, match="'titles': 1"):
        Catalog(("a", "b"), ("A",), ((), ()), counts, counts)


def test_recent_popularity_leads_and_all_time_counts_break_ties() -> None:
    catalog = Catalog(
        item_ids=("old", "new", "newer", "never"),
        titles=(None,) * 4,
        categories=((),) * 4,
        popularity=np.array([90, 5, 6, 0]),
        recent_popularity=np.array([0, 3, 3, 0]),
    )
    order = [catalog.item_id(row) for row in catalog.rows_by_popularity.tolist()]
    assert order == ["newer", "new", "old", "never"]
