"""Queries as the model reads them."""

import pytest

from model.batch import KnownHistory, look_up_history
from model.bundle.manifest import DataWindow
from model.inference.query import clamp_query_time, collate_at, list_warnings
from tests.contracts.histories import CATALOG
from tests.contracts.predictor import query_of
from tests.tiny import DAY, LAST_AT

WINDOW = DataWindow(first_at=LAST_AT - 100 * DAY, last_at=LAST_AT)


def history() -> KnownHistory:
    return look_up_history(query_of([("i1", 3), ("i2", 1)]), CATALOG, {}, max_history=5)


def test_a_query_time_within_the_span_is_unchanged() -> None:
    at = LAST_AT + 99 * DAY - 1
    assert clamp_query_time(WINDOW, at, history()) == at


def test_a_query_time_is_at_most_the_span_after_the_last_event() -> None:
    assert clamp_query_time(WINDOW, LAST_AT + 10**6 * DAY, history()) == LAST_AT + 99 * DAY
    batch = collate_at(WINDOW, query_of([("i1", 3)], LAST_AT + 10**6 * DAY), [history()])
    assert float(batch.query_times[0, 1] - batch.times[0, 1]) == 100.0


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
