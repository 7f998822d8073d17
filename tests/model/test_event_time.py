from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from model.clock import MICROSECONDS_PER_DAY, MICROSECONDS_PER_SECOND
from model.event_time import EARLIEST_EVENT, TimeBounds, check_times

DEMO = Path(__file__).parents[2] / "demo" / "events.parquet"
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


# The clock of a machine may be behind: then events go on past it, and are no fault of the log.
@pytest.mark.parametrize(
    ("ahead", "left_out"), [(1, 1), (10, 10), (11, 0), (400, 0), (600, 0), (1_000, 0)]
)
def test_a_clock_that_is_behind_leaves_nothing_out(ahead: int, left_out: int) -> None:
    times = NOW + (np.arange(1_000) - 999 + ahead) * DAY
    assert int((~check_times(times, NOW).is_plausible).sum()) == left_out


@pytest.mark.parametrize("odd", [1, 20, 100, 400])
@pytest.mark.parametrize("ahead", [0, 11, 400])
def test_a_clock_that_is_behind_excuses_no_distance(odd: int, ahead: int) -> None:
    times = NOW + (np.arange(1_000) - 999 + ahead) * DAY
    times[:odd] = YEAR_2999
    check = check_times(times, NOW)
    assert np.flatnonzero(check.is_ahead).tolist() == [*range(odd)]
    assert not (check.is_stray | check.is_old).any()


def test_data_of_which_all_is_ahead_is_kept() -> None:
    times = YEAR_2999 + np.arange(500) * DAY
    assert check_times(times, NOW).is_plausible.all()
    assert check_times(np.append(times, NOW), NOW).is_plausible.tolist() == [True] * 500 + [False]


def test_of_implausible_times_alone_nothing_is_left_out() -> None:
    assert check_times(np.array([0, YEAR_2999]), NOW).is_plausible.all()


@pytest.mark.parametrize("count", [0, 1, 2, 3, 99])
def test_a_log_without_a_long_gap_has_no_strays(count: int) -> None:
    times = NOW - np.arange(count) ** 3 * DAY // 10_000
    assert check_times(times, NOW).is_plausible.all()


@pytest.mark.parametrize("distance", [10, 300, 10_000])
def test_of_three_events_before_now_none_is_left_out(distance: int) -> None:
    times = NOW - np.array([0, 1, distance]) * DAY
    assert check_times(times, NOW).is_plausible.all()


@pytest.mark.parametrize(
    ("events", "odd"), [(100_000, 110), (1_500, 2), (90, 1), (1_000, 52), (20, 1)]
)
@pytest.mark.parametrize("places", [(1995,), (1991, 1996, 1999), (1995, 2025)])
def test_strays_are_left_out_up_to_a_twentieth(
    events: int, odd: int, places: tuple[int, ...]
) -> None:
    rng = np.random.default_rng(0)
    begin = (2008 - 1970) * 365 * DAY
    times = begin + np.sort(rng.integers(0, 660 * DAY, events))
    strays = (rng.choice(places, odd) - 1970) * 365 * DAY + rng.integers(0, 300 * DAY, odd)
    check = check_times(np.concatenate([strays, times]), NOW)
    assert np.flatnonzero(check.is_stray).tolist() == [*range(odd)]
    assert not (check.is_ahead | check.is_old).any()


@pytest.mark.parametrize("share", [0.05, 0.3, 0.5])
def test_a_twentieth_is_no_stray(share: float) -> None:
    times = NOW - np.arange(1_000) * DAY // 10
    times[: int(1_000 * share)] -= 5_000 * DAY
    assert check_times(times, NOW).is_plausible.all()


@pytest.mark.parametrize("share", [0.03, 0.3])
def test_a_season_a_year_ago_is_kept(share: float) -> None:
    season = np.arange(1_000) * 40 * DAY // 1_000
    times = NOW - season - np.where(np.arange(1_000) < 1_000 * share, 365 * DAY, 0)
    assert check_times(times, NOW).is_plausible.all()


@pytest.mark.parametrize("events", [40, 1_000])
def test_a_burst_does_not_part_the_rest(events: int) -> None:
    # All but a twentieth happen in one instant, as after an import; the rest within a year.
    rest = NOW - np.arange(events // 20) * 365 * DAY // (events // 20)
    times = np.append(rest, np.full(events - len(rest), NOW - 180 * DAY))
    assert check_times(times, NOW).is_plausible.all()


def test_the_first_events_of_movielens_are_kept() -> None:
    # MovieLens 25M: a few ratings in January 1995, then none for a year, then 23 years.
    first = EARLIEST_EVENT + 5 * 366 * DAY
    times = np.append(np.full(3, first), first + 385 * DAY + np.arange(8_000) * DAY)
    assert check_times(times, NOW).is_plausible.all()


def test_the_demo_has_no_strays() -> None:
    events = pl.read_parquet(DEMO, columns=["timestamp"])["timestamp"]
    times = events.dt.epoch("us").to_numpy()
    assert check_times(times, NOW).is_plausible.all()


times_of_any_density = st.lists(
    st.tuples(st.integers(0, 6_000), st.integers(1, 60), st.integers(1, 400)),
    min_size=1,
    max_size=6,
)


def lay_out(bursts: list[tuple[int, int, int]]) -> NDArray[np.int64]:
    """Returns the times of bursts of a number of events over a number of days before a clock."""
    return np.concatenate(
        [NOW - ago * DAY - np.arange(count) * days * DAY // count for ago, count, days in bursts]
    )


@given(bursts=times_of_any_density, behind=st.integers(0, 9_000))
def test_without_a_long_gap_nothing_is_left_out(
    bursts: list[tuple[int, int, int]], behind: int
) -> None:
    times = np.sort(lay_out(bursts))
    gaps = np.minimum(np.diff(times, prepend=times[0]), 365 * DAY)
    closer = NOW - 12_000 * DAY + np.cumsum(gaps)
    assert not check_times(closer, NOW).is_stray.any()
    check = check_times(closer, int(closer[-1]) - behind * DAY)
    # Of those ahead, a hundredth at most.
    assert (~check.is_plausible).sum() <= max(0.01 * len(closer), 1)


@given(
    bursts=times_of_any_density,
    behind=st.integers(0, 7_000),
    seed=st.integers(0, 2**32 - 1),
    share=st.floats(0, 1),
)
def test_far_strays_do_not_change_which_others_are_kept(
    bursts: list[tuple[int, int, int]], behind: int, seed: int, share: float
) -> None:
    rng = np.random.default_rng(seed)
    times, now = lay_out(bursts), NOW - behind * DAY
    begin, end = int(times.min()), int(times.max())
    distance = max(end - begin, 365 * DAY) + DAY
    count = int(share * ((len(times) - 1) // 19))
    assert count < (len(times) + count) / 20
    away = rng.integers(0, 50_000 * DAY, count)
    strays = np.where(rng.random(count) < 0.5, begin - distance - away, end + distance + away)
    check = check_times(np.append(times, strays), now)
    assert not check.is_plausible[len(times) :].any()
    alone = check_times(times, now).is_plausible
    assert (check.is_plausible[: len(times)] == alone).all()
    assert alone.any()


def test_the_start_of_a_growing_log_is_kept() -> None:
    doublings = np.log2(np.arange(1, 200_000))
    times = NOW - ((doublings[-1] - doublings) * 90 * DAY).astype(np.int64)
    assert check_times(times, NOW).is_plausible.all()
