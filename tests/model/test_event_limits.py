import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from model.clock import MICROSECONDS_PER_DAY
from model.event_limits import MOST_OF_ITEM_PER_DAY, MOST_PER_DAY, find_excess

HOUR = MICROSECONDS_PER_DAY // 24
drawn = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5), st.integers(-99, 99)))


@given(events=drawn)
def test_what_people_do_is_all_counted(events: list[tuple[int, int, int]]) -> None:
    users, items, hours = np.array(events, dtype=np.int64).reshape(-1, 3).T
    assert not find_excess(users, items, hours * HOUR).any()


def test_of_one_item_a_hundred_events_a_day_count() -> None:
    hours = np.repeat([0, 23, 24, 47], MOST_OF_ITEM_PER_DAY)
    excess = find_excess(np.zeros(len(hours), int), np.ones(len(hours), int), hours * HOUR)
    expected = np.repeat([False, True, False, True], MOST_OF_ITEM_PER_DAY)
    assert (excess == expected).all()


def test_of_one_user_five_thousand_events_a_day_count() -> None:
    count = 3 * MOST_PER_DAY
    users = np.arange(count) % 2
    excess = find_excess(users, np.arange(count), np.zeros(count, int))
    assert [int((~excess[users == user]).sum()) for user in (0, 1)] == [MOST_PER_DAY] * 2
    assert not excess[: 2 * MOST_PER_DAY].any()
