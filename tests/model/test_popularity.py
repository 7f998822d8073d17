"""Popularity at an instant, against counting the slow way."""

import copy
import gc
import weakref
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import model.popularity
import model.popularity_table
from model.clock import MICROSECONDS_PER_DAY
from model.popularity import (
    FEATURES,
    HALF_LIVES,
    MOST_FEATURES,
    MOST_SPANS,
    CountedEvents,
    CountedSpans,
    DecayedCounts,
    Popularity,
)
from model.popularity_table import PopularityTable

ROWS = 7
START = 1_600_000_000_000_000 // MICROSECONDS_PER_DAY * MICROSECONDS_PER_DAY

Log = tuple[NDArray[np.int32], NDArray[np.int64]]


def draw_log(events: int = 300, days: float = 400, seed: int = 0) -> Log:
    rng = np.random.default_rng(seed)
    times = START + (rng.uniform(0, days, events) * MICROSECONDS_PER_DAY).astype(np.int64)
    return rng.integers(1, ROWS, events).astype(np.int32), times


def count(log: Log) -> Popularity:
    return Popularity.count(*log, rows=ROWS)


def shares_the_slow_way(log: Log, at: int, half_life: float) -> NDArray[np.float64]:
    """The unblended shares of all items among the events before an instant."""
    items, times = log
    before = times < at
    ages = (at - times[before]) / MICROSECONDS_PER_DAY
    counts = np.bincount(items[before], 0.5 ** (ages / half_life), minlength=ROWS)
    return counts / counts.sum()


def test_the_shares_of_all_items_add_up_to_one() -> None:
    features = count(draw_log()).compute_features([0, 100, 250])
    sums = features[:, :-1, 1:].exp().sum(-1)
    torch.testing.assert_close(sums, torch.ones(3, FEATURES - 1))


@pytest.mark.parametrize("half_life", HALF_LIVES[2:])
def test_long_half_lives_give_decayed_shares(half_life: float) -> None:
    """Where many events count, the blend with longer half-lives and the width of a span vanish."""
    log = draw_log(events=40_000)
    popularity = count(log)
    at = popularity.first_at + 300 * popularity.width
    features = popularity.compute_features([300])[0, HALF_LIVES.index(half_life)]
    expected = shares_the_slow_way(log, at, half_life)
    assert features[1:].exp().numpy() == pytest.approx(expected[1:], rel=0.05)


@given(cut=st.integers(1, 350), seed=st.integers(0, 5))
def test_a_snapshot_reads_only_events_before_it(cut: int, seed: int) -> None:
    items, times = draw_log(seed=seed)
    whole = count((items, times))
    snapshot = min(cut, whole.snapshots - 2)
    begin = whole.first_at + snapshot * whole.width
    changed = np.where(times >= begin, ROWS - items, items).astype(np.int32)
    assert torch.equal(
        count((changed, times)).compute_features([snapshot]), whole.compute_features([snapshot])
    )


@given(instant=st.integers(-3 * MICROSECONDS_PER_DAY, 500 * MICROSECONDS_PER_DAY))
def test_an_instant_finds_the_latest_snapshot_before_it(instant: int) -> None:
    popularity = count(draw_log())
    at = START + instant
    found = int(popularity.find(torch.tensor(at)))
    assert 0 <= found <= popularity.last
    if at >= popularity.end_at:
        assert found == popularity.last
    elif at >= popularity.first_at:
        begin = popularity.first_at + found * popularity.width
        assert begin <= at < begin + popularity.width
    else:
        assert found == 0


def test_the_last_snapshot_counts_all_events() -> None:
    log = draw_log()
    state = count(log).compute_state()
    assert state.counts[-1] == pytest.approx(np.bincount(log[0], minlength=ROWS))
    torch.testing.assert_close(
        count(log).compute_features([count(log).last])[0], state.features(), rtol=1e-4, atol=1e-4
    )


def list_events(*times: int) -> CountedSpans:
    """List events of item 3."""
    threes = np.full(len(times), 3, dtype=np.int32)
    return CountedSpans(np.array(times), np.arange(len(times) + 1), threes, np.ones_like(threes))


def test_counting_on_equals_counting_once() -> None:
    items, times = draw_log()
    state = count((items, times)).compute_state()
    later = state.at + 9 * MICROSECONDS_PER_DAY
    middle = state.at + 4 * MICROSECONDS_PER_DAY
    at_once = state.advance(later, list_events(state.at + 1, later - 1))
    in_two_steps = state.advance(middle, list_events(state.at + 1)).advance(
        later, list_events(later - 1)
    )
    assert at_once.counts == pytest.approx(in_two_steps.counts)
    assert at_once.features()[:-1, 3].exp().min() > state.features()[0, 3].exp()


def test_a_long_time_of_counting_on_keeps_few_checkpoints(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    popularity = count(draw_log(days=0.5))
    at = popularity.end_at + 9_000 * MICROSECONDS_PER_DAY
    later = CountedEvents(
        items=np.array([3], dtype=np.int32),
        times=np.array([at]),
        counts=np.array([2], dtype=np.int32),
        last_at=at,
    )
    table = PopularityTable(popularity).count_on(later)
    computed: list[int] = []
    advance = DecayedCounts.advance

    def record(self: DecayedCounts, at: int, *events: Any) -> DecayedCounts:
        computed.append(at)
        return advance(self, at, *events)

    monkeypatch.setattr(DecayedCounts, "advance", record)
    found = table.look_up(torch.tensor([at - MICROSECONDS_PER_DAY]))
    assert len(computed) < 100
    snapshot = table.popularity.find(torch.tensor([at - MICROSECONDS_PER_DAY])).tolist()
    torch.testing.assert_close(found.table, table.popularity.compute_features(snapshot))


def draw_instants(number: int) -> torch.Tensor:
    """Draw instants, most of them of different snapshots of `draw_log`."""
    days = np.random.default_rng(1).uniform(0, 390, number) * MICROSECONDS_PER_DAY
    return torch.from_numpy(START + days.astype(np.int64))


def test_features_do_not_depend_on_the_others_of_a_look_up() -> None:
    popularity = count(draw_log(events=5_000))
    instants = draw_instants(60)
    together = PopularityTable(popularity).look_up(instants)
    for position, instant in enumerate(instants):
        alone = PopularityTable(popularity).look_up(instant.unsqueeze(0))
        assert torch.equal(alone.table[0], together.table[together.entry_of[position]])


@given(events=st.integers(1, 400), seed=st.integers(0, 20), last=st.integers(1, 300))
def test_decayed_counts_equal_a_sum_over_events(events: int, seed: int, last: int) -> None:
    popularity = count(draw_log(events=events, seed=seed))
    snapshot = min(last, popularity.last)
    half = popularity.iter_checkpoints([snapshot // 2])
    (found,) = popularity.iter_checkpoints([snapshot], next(half))
    expected = np.zeros_like(found.state.counts)
    for span, item, number in zip(
        popularity.spans, popularity.items, popularity.counts, strict=True
    ):
        begin = popularity.first_at + int(span) * popularity.width
        end = min(begin + popularity.width, popularity.end_at)
        if end <= found.state.at:
            days = (found.state.at - (begin + end) // 2) / MICROSECONDS_PER_DAY
            expected[:, item] += number * 0.5 ** (days / np.array((*HALF_LIVES, np.inf)))
    assert found.state.counts == pytest.approx(expected, rel=1e-9, abs=1e-300)


def test_an_exponential_is_computed_per_span_and_none_per_event(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    popularity = count(draw_log(events=20_000))
    decay, computed = model.popularity._decay, []
    monkeypatch.setattr(
        model.popularity, "_decay", lambda days: computed.append(np.size(days)) or decay(days)
    )
    list(popularity.iter_checkpoints([100]))
    assert sum(computed) == 100 + 1


def test_a_repeated_look_up_computes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    instants = draw_instants(60)
    table = PopularityTable(count(draw_log()))
    first = table.look_up(instants)
    monkeypatch.setattr(DecayedCounts, "features", None)
    assert torch.equal(table.look_up(instants).table, first.table)


def test_a_look_up_adds_no_more_events_than_there_are_items(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Adding fewer saves nothing beside the decay of all items."""
    popularity = count(draw_log(events=5_000))
    table = PopularityTable(popularity)
    table.look_up(draw_instants(1))
    advance, added = DecayedCounts.advance, []

    def record(self: DecayedCounts, at: int, events: CountedSpans) -> DecayedCounts:
        added.append(len(events.items))
        return advance(self, at, events)

    monkeypatch.setattr(DecayedCounts, "advance", record)
    for instant in draw_instants(200):
        table.look_up(instant.unsqueeze(0))
    assert len(added) > 100
    assert sum(added) < len(added) * ROWS


def test_checkpoints_keep_to_their_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model.popularity_table, "_CHECKPOINT_COUNTS", 100 * (FEATURES - 1) * ROWS)
    popularity = count(draw_log(events=20_000))
    assert len(popularity.counts) > 150 * ROWS
    table = PopularityTable(popularity)
    table.look_up(draw_instants(1))
    assert 64 < len(table._checkpoints) <= 100


def test_a_table_keeps_no_more_features_than_its_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model.popularity_table, "_KEPT_FEATURES", 10 * FEATURES * ROWS)
    table = PopularityTable(count(draw_log()))
    kept: list[weakref.ref[torch.Tensor]] = []
    compute = DecayedCounts.features

    def record(state: DecayedCounts) -> torch.Tensor:
        features = compute(state)
        kept.append(weakref.ref(features))
        return features

    monkeypatch.setattr(DecayedCounts, "features", record)
    instants = draw_instants(60)
    table.look_up(instants)
    gc.collect()
    assert len(kept) > 40
    assert sum(features() is not None for features in kept) == 10


def test_what_sells_now_has_the_larger_share() -> None:
    days = np.arange(200)
    times = START + days * MICROSECONDS_PER_DAY
    items = np.where(days < 180, 1, 2).astype(np.int32)
    features = count((items, times)).compute_state().features()
    shares = features[:-1].exp()
    assert (shares[:3, 2] > 2 * shares[:3, 1]).all()
    assert shares[-1, 2] < shares[-1, 1]


def test_an_item_that_was_never_counted_is_marked() -> None:
    items, times = draw_log()
    features = count((np.minimum(items, 3), times)).compute_features([0, 300])
    assert features[1, -1].tolist() == [0, 0, 0, 0, 1, 1, 1]
    assert features[0, -1, 1:].tolist() == [1] * (ROWS - 1)
    assert torch.isfinite(features).all()


def test_recent_counts_are_those_of_the_last_days() -> None:
    items, times = draw_log()
    popularity = count((items, times))
    assert popularity.width <= MICROSECONDS_PER_DAY
    # A span that begins before the window reaches into it.
    of_days = [
        np.bincount(items[times > popularity.end_at - days * MICROSECONDS_PER_DAY], minlength=ROWS)
        for days in (7, 8)
    ]
    recent = popularity.count_recent(7)
    assert (recent >= of_days[0][1:]).all()
    assert (recent <= of_days[1][1:]).all()
    assert (
        popularity.count_recent(1_000).tolist() == np.bincount(items, minlength=ROWS)[1:].tolist()
    )


def test_no_events_give_equal_shares() -> None:
    features = Popularity.count(
        np.zeros(0, np.int32), np.zeros(0, np.int64), rows=ROWS
    ).compute_features([0])
    torch.testing.assert_close(features[0, 0, 1:].exp(), torch.full((ROWS - 1,), 1 / (ROWS - 1)))


@pytest.mark.parametrize(("days", "rows"), [(1e-3, 4), (2, 100), (700, 5_000), (9_000, 900_000)])
def test_spans_keep_to_the_budgets(days: float, rows: int) -> None:
    _, times = draw_log(days=days)
    popularity = Popularity.count(np.ones(300, np.int32), times, rows=rows)
    assert popularity.snapshots <= MOST_SPANS + 2
    assert (popularity.snapshots - 3) * FEATURES * rows <= MOST_FEATURES


@pytest.mark.parametrize("whole", [True, False])
def test_a_table_looks_up_what_was_computed(whole: bool) -> None:
    popularity = count(draw_log())
    instants = torch.tensor([START + day * MICROSECONDS_PER_DAY for day in (300, 20, 300, 900)])
    found = PopularityTable(popularity, whole=whole).look_up(instants)
    expected = popularity.compute_features(range(popularity.snapshots))
    chosen = expected[popularity.find(instants)]
    torch.testing.assert_close(found.table[found.entry_of], chosen, rtol=1e-4, atol=1e-4)
    assert int(found.entry_of[3]) == found.latest
    rows = torch.tensor([[1, 2], [3, 4], [5, 6], [1, 6]])
    of_items = torch.stack([chosen[query][:, rows[query]].T for query in range(4)])
    torch.testing.assert_close(found.of_items(rows), of_items, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("whole", [True, False])
def test_the_latest_features_are_those_of_all_events(whole: bool) -> None:
    popularity = count(draw_log())
    expected = popularity.compute_state().features()
    latest = PopularityTable(popularity, whole=whole).latest
    torch.testing.assert_close(latest, expected, rtol=1e-4, atol=1e-4)


def test_a_whole_table_computes_the_last_state_once(monkeypatch: pytest.MonkeyPatch) -> None:
    popularity = count(draw_log())
    states = []
    compute = DecayedCounts.features
    monkeypatch.setattr(
        DecayedCounts, "features", lambda state: states.append(state.at) or compute(state)
    )
    PopularityTable(popularity, whole=True)
    assert len(states) == popularity.snapshots
    assert states.count(popularity.end_at) == 1


def test_gates_add_weighted_features() -> None:
    popularity = count(draw_log())
    instants = torch.tensor([START + day * MICROSECONDS_PER_DAY for day in (20, 300, 300)])
    found = PopularityTable(popularity, whole=True).look_up(instants)
    gates, features = torch.randn(3, FEATURES), found.table[found.entry_of]
    expected = torch.einsum("qf,qfr->qr", gates, features)
    torch.testing.assert_close(found.add_to(torch.zeros(3, ROWS), gates), expected)
    some = torch.tensor([4, 2])
    torch.testing.assert_close(found.add_to(torch.zeros(3, 2), gates, some), expected[:, some])
    shares = torch.rand(3, ROWS)
    torch.testing.assert_close(
        found.sum_weighted(shares), torch.einsum("qr,qfr->qf", shares, features)
    )


def test_copies_share_the_counts() -> None:
    table = PopularityTable(count(draw_log()))
    assert copy.deepcopy(table) is table
    assert copy.deepcopy(table.popularity) is table.popularity


def test_a_stray_event_of_1970_does_not_lengthen_the_spans() -> None:
    rng = np.random.default_rng(0)
    times = np.sort(START + rng.integers(0, 90 * MICROSECONDS_PER_DAY, 2_000))
    rows = rng.integers(1, ROWS, 2_000).astype(np.int32)
    expected = Popularity.count(rows, times, rows=ROWS)
    found = Popularity.count(np.append(rows, rows[:1]), np.append(times, 0), rows=ROWS)
    assert found.width == expected.width
    assert found.counts.sum() == 2_001
    assert found.first_at > START - MICROSECONDS_PER_DAY
