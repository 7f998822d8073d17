"""Queries as the model reads them."""

import pytest

from model.bundle.manifest import DataWindow
from model.inference.query import list_warnings
from tests.tiny import DAY, LAST_AT

WINDOW = DataWindow(first_at=LAST_AT - 100 * DAY, last_at=LAST_AT)


@pytest.mark.parametrize(
    ("days", "truncated", "expected"),
    [
        (10, False, ()),
        (10, True, ("history_truncated",)),
        (11, False, ("beyond_training_window",)),
        (11, True, ("beyond_training_window", "history_truncated")),
    ],
)
def test_warnings_follow_from_query_time_and_truncation(
    days: int, truncated: bool, expected: tuple[str, ...]
) -> None:
    assert list_warnings(WINDOW, LAST_AT + days * DAY, truncated=truncated) == expected
