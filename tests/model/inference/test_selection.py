"""The rows that constraints permit."""

import numpy as np
import pytest

from model.inference.answers import Constraints
from model.inference.selection import Selection, find_seen, require_permitted, select_rows
from tests import tiny
from tests.contracts.predictor import query_of

ROWS = np.arange(tiny.ITEMS + 1)


def permitted(constraints: Constraints) -> list[int]:
    catalog, history = tiny.catalog(), query_of([("i1", 3), ("zebra", 2)]).history
    seen = find_seen(catalog, history, constraints)
    selection = select_rows(catalog, seen, constraints, has_item_space=True)
    return ROWS[selection.permits(ROWS)].tolist()


def test_seen_and_excluded_items_are_not_permitted() -> None:
    constraints = Constraints(exclude=frozenset({"i0", "zebra"}))
    assert permitted(constraints) == list(range(3, tiny.ITEMS + 1))
    assert permitted(Constraints(exclude_seen=False)) == list(range(1, tiny.ITEMS + 1))


def test_included_items_are_intersected_with_the_mask() -> None:
    include = frozenset({"i4", "i5", "zebra"})
    assert permitted(Constraints(include=include)) == [5, 6]
    mask = ROWS != 5
    assert permitted(Constraints(include=include, allowed=mask)) == [6]
    assert mask.sum() == tiny.ITEMS


def test_diversity_needs_an_item_space() -> None:
    for has_item_space in (True, False):
        selection = select_rows(
            tiny.catalog(),
            ROWS[:0],
            Constraints(diversity=0.5),
            has_item_space=has_item_space,
        )
        assert selection.diversity == (0.5 if has_item_space else 0.0)


@pytest.mark.parametrize("row", [0, 2, 3])
def test_a_row_outside_the_selection_is_an_error(row: int) -> None:
    selection = Selection(n=5, allowed=ROWS != 2, excluded=np.array([3]))
    require_permitted(np.array([1, 4]), selection)
    with pytest.raises(AssertionError, match="returned 1 others"):
        require_permitted(np.array([1, row]), selection)
