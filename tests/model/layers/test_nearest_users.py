"""The largest values of each row."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from model.layers.nearest_users import select_largest


@given(
    st.lists(st.lists(st.integers(0, 3), min_size=4, max_size=4), min_size=1, max_size=3),
    st.integers(0, 6),
)
def test_of_equal_values_the_first_are_selected(rows: list[list[int]], count: int) -> None:
    chosen = select_largest(np.array(rows, dtype=np.float64), count)
    for row, selected in zip(rows, chosen, strict=True):
        expected = sorted(range(4), key=lambda column: -row[column])[:count]
        assert np.flatnonzero(selected).tolist() == sorted(expected)
