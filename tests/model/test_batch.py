"""Looking up and collating histories."""

import numpy as np
import pytest
import torch

from model.batch import collate, look_up_history
from model.catalog import Catalog
from model.errors import EmptyHistoryError
from model.history import Event, Query
from tests.contracts.histories import DAY, START, collate_queries, draw_queries, full_history

CATALOG = Catalog.from_ids(["a", "b", "c"])


def history(*item_ids: str, action: str | None = None) -> Query:
    events = tuple(Event(item, START + n * DAY, action) for n, item in enumerate(item_ids))
    return Query(events, START + len(item_ids) * DAY)


# Looking up a history


def test_unknown_items_are_reported_once_in_order() -> None:
    found = look_up_history(history("z", "a", "y", "z", "b"), CATALOG, {}, max_history=9)
    assert found.unknown_item_ids == ("z", "y")
    assert found.rows.tolist() == [1, 2]
    assert [event.item_id for event in found.events] == ["a", "b"]
    assert not found.truncated


def test_only_the_latest_known_events_are_used() -> None:
    found = look_up_history(history("a", "b", "z", "c", "z"), CATALOG, {}, max_history=2)
    assert found.rows.tolist() == [2, 3]
    assert [event.item_id for event in found.events] == ["b", "c"]
    assert found.truncated


def test_a_history_that_just_fits_is_not_truncated() -> None:
    assert not look_up_history(history("a", "z", "b"), CATALOG, {}, max_history=2).truncated


def test_actions_become_rows_and_unknown_ones_zero() -> None:
    events = tuple(Event("a", START, action) for action in (None, "buy", "sneeze", "view"))
    found = look_up_history(Query(events, START), CATALOG, {"view": 1, "buy": 2}, max_history=9)
    assert found.actions.tolist() == [0, 2, 0, 1]


def test_events_of_ignored_actions_are_skipped() -> None:
    events = (Event("a", START, "cancel"), Event("b", START, "buy"), Event("z", START, "cancel"))
    query = Query(events, START)
    found = look_up_history(query, CATALOG, {}, ignored_actions=("cancel",), max_history=9)
    assert found.rows.tolist() == [2]
    assert found.unknown_item_ids == ()


# Collating histories


def test_query_times_are_those_of_the_next_events() -> None:
    batch = collate_queries(Query((Event("i1", START), Event("i2", START + DAY)), START + 3 * DAY))
    assert batch.times.tolist() == [[0.0, 1.0]]
    assert batch.query_times.tolist() == [[1.0, 3.0]]
    assert batch.query_given.all()


def test_padding_is_zero_and_on_the_right() -> None:
    batch = collate_queries(*draw_queries(2, 5))
    assert batch.lengths.tolist() == [2, 5]
    for column in (batch.rows, batch.actions, batch.times, batch.query_times):
        assert (column[0, 2:] == 0).all()


def test_a_withheld_query_time_is_replaced_by_the_events_own() -> None:
    query = Query((Event("i1", START), Event("i2", START + DAY)), START + 3 * DAY)
    batch = collate([full_history(query)] * 2, [query.query_time] * 2, [True, False])
    assert batch.query_times[:, -1].tolist() == [1.0, 3.0]
    assert batch.query_given.tolist() == [[True, False], [True, True]]


def test_withholding_later_equals_withholding_in_collate() -> None:
    queries = draw_queries(3, 5)
    expected = collate(
        [full_history(query) for query in queries],
        [query.query_time for query in queries],
        [True, True],
    )
    batch = collate_queries(*queries)
    withheld = batch.withhold_query_times(torch.arange(5) == batch.lengths[:, None] - 1)
    assert all(torch.equal(*pair) for pair in zip(expected, withheld, strict=True))


def test_times_resolve_microseconds() -> None:
    query = Query((Event("i1", START), Event("i2", START + 1)), START + 3)
    batch = collate_queries(query)
    assert (batch.times * DAY).round().tolist() == [[0, 1]]
    assert (batch.query_times * DAY).round().tolist() == [[1, 3]]


def test_a_history_without_a_known_event_is_rejected() -> None:
    empty = look_up_history(history("z"), CATALOG, {}, max_history=9)
    with pytest.raises(EmptyHistoryError, match="number 1 of 2 has none"):
        collate(
            [look_up_history(history("a"), CATALOG, {}, max_history=9), empty], [START + DAY, START]
        )


def test_instants_before_1970_are_supported() -> None:
    query = Query((Event("i1", -5 * DAY), Event("i2", -2 * DAY)), -DAY)
    assert collate_queries(query).query_times.tolist() == [[3.0, 4.0]]
    assert collate_queries(query).times.dtype == torch.float64
    assert full_history(query).rows.dtype == np.int64
