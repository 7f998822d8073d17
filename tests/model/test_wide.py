"""The wide part: counted features of the score, in training, evaluation and serving."""

import math
from datetime import datetime

import pytest
import torch

from model import clock
from model.history import Event, Query
from model.layers.local_clock import LocalClock
from model.layers.repeat_scores import (
    HALF_LIVES,
    PERIODS,
    PHASE_WINDOWS,
    DescribedItems,
    HistoryQueries,
    describe_items,
)
from model.popularity import FEATURES
from model.popularity_table import PopularityFeatures
from model.recommender import Recommender
from model.wide import WideConfig
from tests import tiny
from tests.contracts.histories import CATALOG, ITEMS, collate_queries, draw_queries, prefix

PHASES = -(2 * len(PERIODS) + FEATURES)
"""Where the features of phases begin; those of popularity follow."""

WINDOWS = len(HALF_LIVES) + 3
"""Where the shares within windows of the day and the week begin."""

INTERVALS = WINDOWS + len(PHASE_WINDOWS)
"""Where the features of intervals begin."""

CONFIG = tiny.recommender_config(items=ITEMS, wide=WideConfig())


@pytest.fixture(scope="module")
def recommender() -> Recommender:
    return tiny.recommender(CONFIG)


def describe(query: Query, time_zone: str = "UTC") -> torch.Tensor:
    """The features of each item at its last event, NaN elsewhere: len, features."""
    batch = collate_queries(query)
    queries = HistoryQueries.at_positions(batch, batch.lengths - 1)
    none = PopularityFeatures(torch.zeros(1, 8, ITEMS + 1), torch.zeros(1, dtype=torch.int64))
    described = describe_items(batch, queries, none, LocalClock(time_zone))
    return place(described, 1, batch.rows.shape[1])[0]


def place(described: DescribedItems, queries: int, length: int) -> torch.Tensor:
    """Place the features of items at their last events: queries, len, features."""
    query, position, features, _ = described
    placed = torch.full((queries, length, features.shape[1]), math.nan)
    placed[query, position] = features
    return placed


def bought(*happened: tuple[str, int], at: int = 100) -> Query:
    """Events as item and day, and a query on a day."""
    start = tiny.FIRST_AT
    events = tuple(Event(item, start + day * tiny.DAY) for item, day in happened)
    return Query(events, start + at * tiny.DAY)


def test_an_item_is_scored_at_its_last_event() -> None:
    features = describe(bought(("i1", 0), ("i2", 5), ("i1", 9)))
    assert features.isfinite().all(-1).tolist() == [False, True, True]


def test_features_are_computed_once_per_item_of_a_history() -> None:
    batch = collate_queries(bought(*(("i1", day) for day in range(50)), ("i2", 60)))
    queries = HistoryQueries.at_last_events(batch)
    none = PopularityFeatures(torch.zeros(1, 8, ITEMS + 1), torch.zeros(1, dtype=torch.int64))
    described = describe_items(batch, queries, none, LocalClock())
    assert described.position.tolist() == [49, 50]
    assert len(described.features) == 2


def test_shares_are_of_the_events_of_the_history() -> None:
    features = describe(bought(("i1", 0), ("i2", 5), ("i1", 9), at=30))
    shares = features[2, : len(HALF_LIVES)].exp()
    for share, half_life in zip(shares.tolist(), HALF_LIVES, strict=True):
        weights = [0.5 ** ((30 - day) / half_life) for day in (0, 5, 9)]
        assert share == pytest.approx((weights[0] + weights[2]) / sum(weights), rel=1e-4)


def test_events_of_one_instant_are_one_basket() -> None:
    together = describe(bought(("i1", 0), ("i2", 0), ("i3", 0), ("i4", 9)))
    apart = describe(bought(("i1", 0), ("i4", 9)))
    baskets = len(HALF_LIVES)
    of_first = [together[event, baskets:PHASES].tolist() for event in range(3)]
    assert of_first[0] == of_first[1] == of_first[2]
    # One basket ago, whatever it held; its share is divided among its items.
    assert together[0, INTERVALS:PHASES].tolist() == apart[0, INTERVALS:PHASES].tolist()


def test_the_mean_interval_is_that_between_an_items_events() -> None:
    features = describe(bought(("i1", 0), ("i2", 3), ("i1", 10), ("i1", 20), at=25))
    since, _, interval, ratio, is_single = (features[3, INTERVALS:PHASES] * 3).tolist()
    assert since == pytest.approx(torch.tensor(6.0).log().item(), abs=1e-6)
    assert interval == pytest.approx(torch.tensor(11.0).log().item(), abs=1e-6)
    assert ratio == pytest.approx(5 / 11)
    assert is_single == 0
    assert (features[1, INTERVALS + 4] * 3).item() == pytest.approx(1)


def test_phases_are_of_the_time_since_an_items_last_event() -> None:
    features = describe(bought(("i1", 0), ("i2", 3), at=14))
    cosines, sines = features[:, PHASES:-FEATURES].tensor_split(2, dim=1)
    for event, days in enumerate((14, 11)):
        angles = 2 * torch.pi * days / torch.tensor(PERIODS)
        torch.testing.assert_close(cosines[event], angles.cos(), atol=1e-4, rtol=0)
        torch.testing.assert_close(sines[event], angles.sin(), atol=1e-4, rtol=0)


def shares_in_windows(*at: str, query: str, time_zone: str = "UTC") -> torch.Tensor:
    """The shares within each window of the first of two items, i1 at all instants but the last."""
    instants = [clock.from_datetime(datetime.fromisoformat(f"{one}+00:00")) for one in (*at, query)]
    items = [*["i1"] * (len(at) - 1), "i2"]
    events = tuple(Event(item, when) for item, when in zip(items, instants, strict=False))
    features = describe(Query(events, instants[-1]), time_zone)
    return features[len(at) - 2, WINDOWS:INTERVALS].exp()


# 2012-04-02 was a Monday.
def test_an_event_at_the_hour_of_the_query_weighs_more() -> None:
    at_nine, at_same, at_nine_that_weekday, that_weekday = shares_in_windows(
        "2012-04-02T09:00", "2012-04-03T21:00", query="2012-04-09T09:00"
    )
    assert min(at_nine, at_same, at_nine_that_weekday, that_weekday) > 0.95
    other = shares_in_windows("2012-04-03T21:00", "2012-04-04T09:00", query="2012-04-11T09:00")
    assert other[:3].max() < 0.01
    # Half a day beside the query in the week, where twelve hours weigh exp(-1/2).
    assert other[3].item() == pytest.approx(math.exp(-0.5) / (math.exp(-0.5) + 1), abs=0.01)


def test_shares_do_not_vanish_after_years() -> None:
    # Equal events are one, so the nine differ by their actions.
    chosen = [("i1", f"action {number}") for number in range(9)] + [("i2", "action")]
    events = tuple(Event(item, tiny.FIRST_AT, action) for item, action in chosen)
    for at in (1, 400, 40_000):
        features = describe(Query(events, tiny.FIRST_AT + at * tiny.DAY))
        assert features[9, :INTERVALS].exp().tolist() == pytest.approx([0.1] * INTERVALS, rel=1e-4)


def test_windows_fade_with_a_half_life_of_112_days() -> None:
    old = shares_in_windows("2012-04-02T09:00", "2012-07-23T09:00", query="2012-07-30T09:00")
    assert old.tolist() == pytest.approx([1 / 3] * len(PHASE_WINDOWS), abs=1e-3)


def test_the_same_hour_of_another_weekday_weighs_less() -> None:
    of_other = shares_in_windows("2012-04-03T09:00", "2012-04-04T09:00", query="2012-04-11T09:00")
    assert of_other[:2].tolist() == pytest.approx([0.5, 0.5], abs=2e-3)
    # A day is a seventh of the circle: exp(k (cos(2 pi / 7) - 1)), k of twelve hours.
    weight = math.exp((7 / math.pi) ** 2 * (math.cos(2 * math.pi / 7) - 1))
    assert of_other[2:].tolist() == pytest.approx([weight / (weight + 1)] * 2, abs=1e-3)


def test_every_history_of_a_batch_has_its_own_hours() -> None:
    start = clock.from_datetime(datetime.fromisoformat("2012-04-02T00:00+00:00"))
    hour = tiny.DAY // 24
    queries = [
        Query(
            (Event("i1", start + shift * hour), Event("i2", start + (shift + 9) * hour)),
            start + 7 * tiny.DAY + shift * 2 * hour,
        )
        for shift in (0, 5, 11)
    ]
    together = collate_queries(*queries)
    at = HistoryQueries.at_last_events(together)
    none = PopularityFeatures(torch.zeros(1, 8, ITEMS + 1), torch.zeros(3, dtype=torch.int64))
    described = describe_items(together, at, none, LocalClock())
    features = place(described, len(queries), together.rows.shape[1])
    for row, query in enumerate(queries):
        torch.testing.assert_close(features[row], describe(query))


def test_windows_are_as_wide_as_they_say() -> None:
    # Two hours beside the query, and at its hour: exp(-1/2) to 1, but for the bend of the circle.
    of_day = shares_in_windows("2012-04-03T11:00", "2012-04-04T09:00", query="2012-04-05T09:00")[0]
    age = 0.5 ** (1 / 112)
    weight = age ** (46 / 24) * math.exp(-0.5) / age
    assert of_day.item() == pytest.approx(weight / (weight + 1), abs=0.01)


def test_weekdays_and_weekends_are_apart() -> None:
    events = "2012-04-06T09:00", "2012-04-07T09:00"
    of_weekday = shares_in_windows(*events, query="2012-04-10T09:00")
    of_weekend = shares_in_windows(*events, query="2012-04-08T09:00")
    assert of_weekday[1].item() == pytest.approx(8 / 9, abs=0.01)
    assert of_weekend[1].item() == pytest.approx(1 / 9, abs=0.01)
    assert of_weekday[0].item() == pytest.approx(of_weekend[0].item(), abs=1e-3)


def test_hours_and_weekdays_are_those_of_the_time_zone() -> None:
    # Nine o'clock in New York, before and after the clocks changed on 2012-03-11.
    at = "2012-03-09T02:00", "2012-03-09T14:00"
    local = shares_in_windows(*at, query="2012-03-12T13:00", time_zone="America/New_York")
    utc = shares_in_windows(*at, query="2012-03-12T14:00")
    torch.testing.assert_close(local, utc, rtol=0.02, atol=0.002)
    # Saturday 02:00 of UTC is Friday evening in New York.
    events, query = ("2012-04-06T02:00", "2012-04-07T02:00"), "2012-04-11T02:00"
    assert shares_in_windows(*events, query=query)[1] > 0.85
    assert shares_in_windows(*events, query=query, time_zone="America/New_York")[1] < 0.55


def test_a_position_scores_as_its_prefix(recommender: Recommender) -> None:
    query = draw_queries(6)[0]
    batch = collate_queries(query)
    at = recommender.encode_at(batch, torch.arange(6))
    scores = recommender.score_encoded(at, recommender.static_vectors())
    for position in range(6):
        alone = recommender.score_catalog(collate_queries(prefix(query, position + 1)))
        torch.testing.assert_close(scores[position, 1:], alone[0, 1:], rtol=1e-4, atol=1e-4)


def test_a_sweep_scores_as_single_queries(recommender: Recommender) -> None:
    query = draw_queries(5)[0]
    batch = collate_queries(query)
    days = batch.times[0, -1] + torch.tensor([0.0, 0.3, 40.0, 900.0], dtype=torch.float64)
    swept = recommender.sweep(batch, days)
    rows = torch.arange(1, ITEMS + 1)
    of_sweep = recommender.score_rows(swept, rows)
    for number, day in enumerate(days):
        single = batch._replace(query_times=batch.query_times.clone())
        single.query_times[0, -1] = day
        alone = recommender(single)
        torch.testing.assert_close(
            of_sweep[number : number + 1], recommender.score_rows(alone, rows), rtol=1e-4, atol=1e-4
        )
        assert swept.repeat_scores is not None
        torch.testing.assert_close(
            swept.repeat_scores[number], alone.repeat_scores[0], rtol=1e-4, atol=1e-4
        )


def test_the_popularity_is_that_at_the_query_time(recommender: Recommender) -> None:
    """Everything else equal, an item that others chose since scores higher."""
    assert recommender.counts is not None
    popularity = recommender.counts.popularity.popularity
    events = tuple(Event(CATALOG.item_id(1), popularity.first_at + index) for index in range(2))
    batches = [
        collate_queries(Query(events, popularity.first_at + day * tiny.DAY)) for day in (1, 150)
    ]
    early, late = (recommender(batch).popularity for batch in batches)
    assert early is not None
    assert late is not None
    assert not torch.equal(early.table[early.entry_of], late.table[late.entry_of])


def test_popularity_is_read_beyond_the_longest_interval() -> None:
    recommender = tiny.recommender(CONFIG)
    recommender.longest_interval = 5.0
    late = Query((Event("i1", tiny.FIRST_AT + tiny.DAY),), tiny.LAST_AT + tiny.DAY)
    found = recommender(collate_queries(late)).popularity
    assert found is not None
    latest = tiny.event_counts(ITEMS).popularity.latest
    assert torch.equal(found.table[found.entry_of[0]], latest)


def test_a_withheld_query_time_stands_as_of_the_last_event(recommender: Recommender) -> None:
    query = draw_queries(5)[0]
    at_last = Query(query.history, query.history[-1].at, query_time_withheld=True)
    later = Query(query.history, query.query_time, query_time_withheld=True)
    assert torch.equal(
        recommender.score_catalog(collate_queries(at_last)),
        recommender.score_catalog(collate_queries(later)),
    )


@pytest.mark.parametrize("left_out", ["popularity", "repeats", "followers", "calendar"])
def test_every_part_can_be_left_out(left_out: str) -> None:
    partial = tiny.recommender(
        CONFIG.model_copy(update={"wide": WideConfig.model_validate({left_out: False})})
    )
    scores = partial.score_catalog(collate_queries(*draw_queries(3, 6)))
    assert torch.isfinite(scores[:, 1:]).all()


def test_a_wide_part_without_counts_names_the_remedy() -> None:
    with pytest.raises(RuntimeError, match="set `counts`"):
        CONFIG.build()(collate_queries(*draw_queries(3)))


def test_it_starts_at_the_quality_of_the_counts() -> None:
    """Fresh weights rank an item that the user repeats above all others."""
    torch.manual_seed(0)
    fresh = CONFIG.build().eval()
    fresh.counts = tiny.event_counts(ITEMS)
    query = bought(*(("i7", day) for day in range(5)), ("i3", 9), at=10)
    assert int(fresh.score_catalog(collate_queries(query))[0, 1:].argmax()) + 1 == 8
