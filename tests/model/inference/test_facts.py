"""Facts about items: which events of a history count, and how often all users chose an item."""

from dataclasses import replace

import numpy as np
import pytest

from model.history import Event, Query
from model.inference.answers import Constraints, ItemFacts
from model.inference.facts import select_standing
from model.inference.predictor import Predictor
from model.store.opening import open_predictor
from model.wide import WideConfig
from tests import tiny
from tests.contracts.predictor import query_of
from tests.tiny import DAY, FIRST_AT, ITEM_IDS, LAST_AT

EVERYTHING = Constraints(n=len(ITEM_IDS), exclude_seen=False)


def of_item(*actions: str | None) -> list[Event]:
    return [Event("i1", at, action) for at, action in enumerate(actions)]


@pytest.mark.parametrize(
    ("actions", "action", "times"),
    [
        (("purchase", "purchase"), "purchase", 2),
        (("purchase", "cancel"), None, 0),
        (("purchase", "cancel", "purchase"), "purchase", 1),
        (("cancel", "purchase"), "purchase", 1),
        (("view", "purchase", "view", "cancel"), "view", 2),
        (("view", "view", "purchase"), "purchase", 1),
        (("view", "play", "play"), "play", 2),
        (("view", "play"), "play", 1),
        ((None, None), None, 2),
        ((None, "refund"), None, 0),
        (("order_cancelled",), None, 0),
        ((), None, 0),
    ],
)
def test_events_that_are_undone_do_not_count(
    actions: tuple[str | None, ...], action: str | None, times: int
) -> None:
    found, events = select_standing(of_item(*actions))
    assert (found, len(events)) == (action, times)


def test_a_cancellation_at_the_same_instant_undoes_the_purchase() -> None:
    events = [Event("i1", 5, "cancel"), Event("i1", 5, "purchase")]
    assert select_standing(events) == (None, [])


@pytest.fixture(scope="module")
def predictor(tmp_path_factory: pytest.TempPathFactory) -> Predictor:
    config = tiny.recommender_config(wide=WideConfig(), ignored_actions=("cancel",))
    return open_predictor(tiny.write_bundle(tmp_path_factory.mktemp("b"), config=config))


def facts(predictor: Predictor, query: Query) -> dict[str, ItemFacts]:
    items = predictor.recommend(query, EVERYTHING, reasons=True).items
    return {item.item_id: item.reasons.facts for item in items if item.reasons is not None}


def test_ignored_cancellations_undo_purchases(predictor: Predictor) -> None:
    history = tuple(
        Event(item_id, LAST_AT - int(ago * DAY), action)
        for item_id, ago, action in [
            ("i1", 30.5, "purchase"),
            ("i1", 20.5, "purchase"),
            ("i2", 10, "purchase"),
            ("i1", 9, "cancel"),
        ]
    )
    found = facts(predictor, Query(history, LAST_AT))
    assert (found["i1"].times, found["i1"].last_days, found["i1"].action) == (1, 30, "purchase")
    assert (found["i2"].times, found["i2"].last_days) == (1, 10)
    assert (found["i3"].times, found["i3"].last_days, found["i3"].action) == (0, None, None)


def test_events_that_the_model_does_not_read_do_not_count(predictor: Predictor) -> None:
    longest = predictor.bundle.manifest.max_history
    happened = [("i1", 90.0), *((f"i{n + 2}", 20.0 - n) for n in range(longest))]
    assert facts(predictor, query_of(happened))["i1"].times == 0


def test_popularity_compares_four_weeks_with_those_before(predictor: Predictor) -> None:
    """Against the random events that the popularity was counted from."""
    rng = np.random.default_rng(0)
    rows = rng.integers(1, len(ITEM_IDS) + 1, 500)
    times = rng.integers(FIRST_AT, LAST_AT, 500)
    counts = predictor.bundle.recommender.counts
    assert counts is not None
    popularity = counts.popularity.popularity
    for query_time in (LAST_AT, FIRST_AT + 90 * DAY):
        whole = (min(query_time, popularity.end_at) - popularity.first_at) // popularity.width
        end = popularity.first_at + whole * popularity.width
        found = facts(predictor, query_of([("i1", 3)], query_time))
        for row, item_id in enumerate(ITEM_IDS, start=1):
            recent, earlier = (
                np.sum(
                    (rows == row)
                    & (times >= end - (n + 1) * 28 * DAY)
                    & (times < end - n * 28 * DAY)
                )
                for n in (0, 1)
            )
            assert (found[item_id].recent_events, found[item_id].earlier_events) == (
                recent,
                earlier,
            )
            ratio = recent / earlier if earlier else None
            assert found[item_id].popularity_ratio == ratio


@pytest.mark.parametrize("query_time", [FIRST_AT + 50 * DAY, LAST_AT + 30 * DAY])
def test_popularity_is_unknown_where_nothing_was_counted(
    predictor: Predictor, query_time: int
) -> None:
    found = facts(predictor, query_of([("i1", 3)], query_time))["i1"]
    assert (found.recent_events, found.earlier_events, found.popularity_ratio) == (None, None, None)


def test_facts_are_of_a_query_time_that_the_model_does_not_read(predictor: Predictor) -> None:
    query = query_of([("i5", 9)], FIRST_AT + 90 * DAY)
    withheld = replace(query, query_time_withheld=True)
    assert facts(predictor, withheld)["i5"] == facts(predictor, query)["i5"]


def test_what_followed_is_another_item_of_the_history(predictor: Predictor) -> None:
    happened = [("i1", 9.0), ("i2", 5.0), ("i7", 0.5)]
    items = predictor.recommend(query_of(happened), EVERYTHING, reasons=True).items
    named = 0
    for item in items:
        assert item.reasons is not None
        (followers,) = (one for one in item.reasons.contributions if one.kind == "followers")
        others = [one for one in followers.events if one.row != item.row]
        row = item.reasons.facts.follows_row
        assert (row is None) == (not others)
        if row is not None:
            named += 1
            assert row == max(others, key=lambda one: one.value).row
    assert named > 3


def test_items_filled_in_by_popularity_count_their_events(predictor: Predictor) -> None:
    items = predictor.recommend(query_of([]), Constraints(n=3), reasons=True).items
    assert [item.item_id for item in items] == ["i23", "i0", "i1"]
    for item in items:
        assert item.reasons is not None
        ((kind, value),) = ((one.kind, one.value) for one in item.reasons.contributions)
        assert (kind, value) == ("popularity", item.score)
        assert item.reasons.facts.trained_events == 24 - ITEM_IDS.index(item.item_id)
