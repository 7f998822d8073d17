import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.clock import MICROSECONDS_PER_DAY, MICROSECONDS_PER_SECOND
from model.event_time import EARLIEST_EVENT, TimeBounds, check_times

NOW = 1_767_225_600_000_000
DAY = MICROSECONDS_PER_DAY
YEAR_1, YEAR_2999 = -62_135_596_800_000_000, 32_472_144_000_000_000


def test_the_bounds_are_1990_and_300_seconds_ahead() -> None:
    bounds = TimeBounds.at(NOW)
    ahead = NOW + 300 * MICROSECONDS_PER_SECOND
    inside = [EARLIEST_EVENT, NOW, ahead]
    outside = [EARLIEST_EVENT - 1, ahead + 1, YEAR_1, 0, YEAR_2999]
    assert [*map(bounds.contain, inside + outside)] == [True] * 3 + [False] * 5


@given(
    days=st.integers(1, 4_000),
    count=st.integers(100, 3_000),
    seed=st.integers(0, 2**32 - 1),
    odd=st.sampled_from((YEAR_1, 0, YEAR_2999, NOW - 12_000 * DAY)),
)
def test_one_implausible_event_alone_is_left_out(
    days: int, count: int, seed: int, odd: int
) -> None:
    rng = np.random.default_rng(seed)
    times = NOW - rng.integers(0, days * DAY, count)
    assert check_times(times, NOW).is_plausible.all()
    place = int(rng.integers(count))
    check = check_times(np.insert(times, place, odd), NOW)
    assert np.flatnonzero(~check.is_plausible).tolist() == [place]


@pytest.mark.parametrize("share", [0.01, 0.3])
def test_many_missing_times_do_not_make_one_another_plausible(share: float) -> None:
    times = NOW - np.arange(1_000) * DAY // 10
    missing = np.arange(1_000) < 1_000 * share
    check = check_times(np.where(missing, 0, times), NOW)
    assert (check.is_old == missing).all()
    assert not check.is_stray.any()


@pytest.mark.parametrize("origin", [0, YEAR_2999])
def test_times_from_another_origin_are_meant_so(origin: int) -> None:
    times = origin + np.arange(500) * DAY
    assert check_times(times, NOW).is_plausible.all()


@pytest.mark.parametrize(("ahead", "left_out"), [(1, 1), (10, 10), (11, 0)])
def test_a_clock_that_is_behind_leaves_nothing_out(ahead: int, left_out: int) -> None:
    times = NOW + (np.arange(1_000) - 999 + ahead) * DAY
    assert int((~check_times(times, NOW).is_plausible).sum()) == left_out


def test_of_implausible_times_alone_nothing_is_left_out() -> None:
    assert check_times(np.array([0, YEAR_2999]), NOW).is_plausible.all()


@pytest.mark.parametrize("count", [0, 1, 2, 99])
def test_few_events_have_no_strays(count: int) -> None:
    times = NOW - np.arange(count) ** 3 * DAY // 10_000
    assert check_times(times, NOW).is_plausible.all()


def test_the_start_of_a_growing_log_is_kept() -> None:
    doublings = np.log2(np.arange(1, 200_000))
    times = NOW - ((doublings[-1] - doublings) * 90 * DAY).astype(np.int64)
    assert check_times(times, NOW).is_plausible.all()
