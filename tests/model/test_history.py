"""Events and queries."""

from dataclasses import FrozenInstanceError

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.errors import UnorderedHistoryError
from model.history import Event, Query

events = st.builds(Event, st.sampled_from("abc"), st.integers(0, 5))


def test_events_out_of_order_are_rejected_with_their_items() -> None:
    with pytest.raises(UnorderedHistoryError, match=r"'b' at 1 follows 'a' at 2"):
        Query((Event("a", 2), Event("b", 1)), 3)


def test_an_event_after_the_query_time_is_rejected() -> None:
    with pytest.raises(UnorderedHistoryError, match="not be later than the query time 3"):
        Query((Event("a", 4),), 3)


def test_an_event_at_the_query_time_is_part_of_the_history() -> None:
    assert Query((Event("a", 3),), 3).history == (Event("a", 3),)


def test_a_history_may_be_empty() -> None:
    assert Query((), 0).history == ()


def test_events_are_immutable() -> None:
    with pytest.raises(FrozenInstanceError):
        Event("a", 1).at = 2  # type: ignore[misc]


@given(events_so_far=st.lists(events, max_size=8), query_time=st.integers(0, 5))
def test_as_of_keeps_past_events_by_time_then_item(
    events_so_far: list[Event], query_time: int
) -> None:
    query = Query.as_of(events_so_far, query_time)
    expected = [
        event
        for at in range(query_time + 1)
        for event in (Event(item_id, at) for item_id in "abc")
        if event in events_so_far
    ]
    assert list(query.history) == expected


def test_as_of_sorts_by_code_point_and_actions_last() -> None:
    expected = (
        Event("Z", 1),
        Event("a", 1),
        Event("a", 1, ""),
        Event("a", 1, "buy"),
        Event("a", 1, "view"),
        Event("é", 1, "buy"),
        Event("\uffff", 1, "buy"),
        Event("🦊", 1, "buy"),
        Event("A", 2),
    )
    assert Query.as_of(expected[::-1] + expected[2:5], 2).history == expected


@pytest.mark.parametrize(
    "history",
    [
        (Event("b", 1), Event("a", 1)),
        (Event("a", 1, "view"), Event("a", 1, "buy")),
        (Event("a", 1, "view"), Event("a", 1)),
        (Event("a", 1), Event("a", 1)),
    ],
)
def test_events_of_one_instant_have_one_order(history: tuple[Event, ...]) -> None:
    with pytest.raises(UnorderedHistoryError, match="those of one instant by item and action"):
        Query(history, 1)


def test_as_of_keeps_the_user_and_the_withheld_flag() -> None:
    query = Query.as_of([], 7, user_id="u", query_time_withheld=True)
    assert query == Query((), 7, "u", query_time_withheld=True)
