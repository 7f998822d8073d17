import numpy as np
import polars as pl
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from model.catalog import Catalog
from model.errors import TrainingError
from model.history import Event, Query
from tests.tiny import DAY, FIRST_AT, event_log
from tests.training.data.drawn_datasets import datasets
from training.data.dataset import Dataset

NOW = FIRST_AT

few = settings(max_examples=30)


def stretch(dataset: Dataset, user_id: str) -> list[str | None]:
    """A user's items in order, None where unknown."""
    user = dataset.user_ids.index(user_id)
    rows = dataset.rows[dataset.offsets[user] : dataset.offsets[user + 1]].tolist()
    return [dataset.catalog.item_id(row) if row else None for row in rows]


def test_events_are_grouped_by_user_oldest_first() -> None:
    dataset = Dataset.of(
        event_log([("u", "b", NOW + 5), ("v", "c", NOW), ("u", "a", NOW + 2), ("v", "a", NOW + 9)])
    )
    assert dataset.user_ids == ("u", "v")
    assert stretch(dataset, "u") == ["a", "b"]
    assert stretch(dataset, "v") == ["c", "a"]
    assert dataset.times.tolist() == [NOW + 2, NOW + 5, NOW, NOW + 9]
    assert dataset.user_of.tolist() == [0, 0, 1, 1]


def test_tensors_share_the_memory_of_a_data_set() -> None:
    dataset = Dataset.of(event_log([("u", "b", NOW + 5), ("v", "c", NOW)]))
    tensors = dataset.on(torch.device("cpu"))
    for name in ("rows", "times", "action_rows"):
        assert getattr(tensors, name).data_ptr() == getattr(dataset, name).ctypes.data
    assert dataset.on(torch.device("cpu")) is tensors


@few
@given(items=st.permutations("cabdfeA🦊\uffff"), again=st.lists(st.sampled_from("abc")))
def test_events_of_one_instant_are_in_one_order_and_once(
    items: list[str], again: list[str]
) -> None:
    dataset = Dataset.of(event_log([("u", item, NOW) for item in (*items, *again)]))
    query = Query.as_of([Event(item, NOW) for item in items], NOW)
    assert stretch(dataset, "u") == [event.item_id for event in query.history]


def test_events_that_differ_in_their_action_are_kept() -> None:
    log = pl.concat([event_log([("u", "a", NOW)] * 2, action) for action in ("view", "buy")])
    dataset = Dataset.of(log)
    assert [event.action for event in dataset.history(0)] == ["buy", "view"]
    assert Dataset.of(log, min_user_events=2).times.tolist() == [NOW, NOW]
    assert len(Dataset.of(log, distinct=False)) == 4


@few
@given(dataset=datasets())
def test_every_event_is_kept_once_under_its_user(dataset: Dataset) -> None:
    assert dataset.offsets[0] == 0
    assert dataset.offsets[-1] == len(dataset)
    assert (np.diff(dataset.offsets) > 0).all()
    same_user = np.diff(dataset.user_of) == 0
    assert (np.diff(dataset.times)[same_user] >= 0).all()
    assert dataset.catalog.popularity.sum() == len(dataset)


def test_popularity_is_of_all_time_and_the_last_seven_days() -> None:
    week = 7 * DAY
    dataset = Dataset.of(
        event_log(
            [("u", "a", NOW), ("u", "b", NOW + 1), ("u", "a", NOW + 2), ("u", "b", NOW + week)]
        )
    )
    assert dataset.catalog.popularity.tolist() == [2, 2]
    assert dataset.catalog.recent_popularity.tolist() == [1, 2]


def test_ignored_actions_are_left_out_before_anything_is_counted() -> None:
    bought = event_log([("u", "a", NOW), ("u", "b", NOW + 1)], "buy")
    cancelled = event_log([("u", "z", NOW), ("w", "a", NOW)], "cancel")
    dataset = Dataset.of(pl.concat([bought, cancelled]), ignored_actions=("cancel",))
    assert dataset.user_ids == ("u",)
    assert dataset.catalog.item_ids == ("a", "b")
    assert dataset.actions == ("buy",)


def test_actions_are_rows_from_one() -> None:
    log = pl.concat(
        [event_log([("u", "a", NOW + n)], name) for n, name in enumerate(("buy", "view", "buy"))]
    )
    dataset = Dataset.of(log)
    assert [dataset.actions[row - 1] for row in dataset.action_rows] == ["buy", "view", "buy"]


def test_rare_items_go_first_and_then_users_left_with_little() -> None:
    log = event_log(
        [
            ("u", "a", NOW),
            ("u", "b", NOW + 1),
            ("v", "a", NOW),
            ("v", "z", NOW + 1),
            ("u", "b", NOW),
        ]
    )
    dataset = Dataset.of(log, min_item_events=2, min_user_events=2)
    assert dataset.user_ids == ("u",)
    assert stretch(dataset, "u") == ["a", "b", "b"]


def test_an_empty_data_set_is_refused_with_its_settings() -> None:
    with pytest.raises(TrainingError, match="min_item_events=3 and min_user_events=1"):
        Dataset.of(event_log([("u", "a", NOW)]), min_item_events=3)


def test_titles_and_categories_follow_their_items() -> None:
    items = pl.DataFrame(
        {
            "item_id": ["b", "unheard", "a"],
            "title": ["Bee", "Silence", None],
            "categories": [["x", "y"], [], None],
        }
    )
    dataset = Dataset.of(event_log([("u", "a", NOW), ("u", "b", NOW), ("u", "c", NOW)]), items)
    assert dataset.catalog.titles == (None, "Bee", None)
    assert dataset.catalog.categories == ((), ("x", "y"), ())


@few
@given(dataset=datasets(min_events=2), seed=st.integers(0, 99))
def test_a_limited_catalog_holds_the_training_items_only(dataset: Dataset, seed: int) -> None:
    is_training = np.random.default_rng(seed).random(len(dataset)) < 0.5
    is_training[0] = True
    limited = dataset.limit_catalog(is_training)
    ids = [dataset.catalog.item_id(row) for row in dataset.rows.tolist()]
    trained = {item_id for item_id, learned in zip(ids, is_training, strict=True) if learned}
    assert {*limited.catalog.item_ids} == trained
    for row, item_id in zip(limited.rows.tolist(), ids, strict=True):
        assert (limited.catalog.item_id(row) if row else None) == (
            item_id if item_id in trained else None
        )
    for number, item_id in enumerate(limited.catalog.item_ids):
        learned = sum(one == item_id for one, use in zip(ids, is_training, strict=True) if use)
        assert limited.catalog.popularity[number] == learned


@few
@given(dataset=datasets(min_events=2), seed=st.integers(0, 99))
def test_known_histories_lose_the_unknown_events_alone(dataset: Dataset, seed: int) -> None:
    is_training = np.random.default_rng(seed).random(len(dataset)) < 0.4
    is_training[0] = True
    limited = dataset.limit_catalog(is_training)
    known = limited.known
    assert (known.rows > 0).all()
    assert known.user_ids == limited.user_ids
    for user_id in limited.user_ids:
        left = [item_id for item_id in stretch(limited, user_id) if item_id is not None]
        assert stretch(known, user_id) == left
    assert known.times.tolist() == limited.times[limited.rows > 0].tolist()


def test_a_history_has_external_ids_up_to_an_event() -> None:
    dataset = Dataset.of(
        event_log([("u", "b", NOW + 5), ("v", "c", NOW), ("u", "a", NOW + 2)], action="view")
    )
    assert dataset.history(0) == (Event("a", NOW + 2, "view"), Event("b", NOW + 5, "view"))
    assert dataset.history(0, end=1) == (Event("a", NOW + 2, "view"),)
    assert dataset.history(1) == (Event("c", NOW, "view"),)


def test_a_history_leaves_out_what_the_catalog_does_not_know() -> None:
    whole = Dataset.of(event_log([("u", item, NOW + at) for at, item in enumerate("abcb")]))
    limited = whole.limit_catalog(np.array([False, True, False, True]))
    assert limited.history(0) == (
        Event("b", NOW + 1, "event"),
        Event("b", NOW + 3, "event"),
    )


def test_events_can_be_read_in_terms_of_another_catalog() -> None:
    dataset = Dataset.of(event_log([("u", "a", NOW), ("u", "b", NOW + 1)], "buy"))
    other = dataset.reindex(Catalog.from_ids(["b", "c"]), ("view", "buy"))
    assert stretch(other, "u") == [None, "b"]
    assert other.action_rows.tolist() == [2, 2]


def test_more_actions_than_rows_can_number_are_refused() -> None:
    events = pl.concat([event_log([("u", "i", 0)])] * 32_768).with_columns(
        action=pl.int_range(pl.len()).cast(pl.String)
    )
    with pytest.raises(TrainingError, match=r"at most 32,767 different actions, but got 32,768"):
        Dataset.of(events)
    assert Dataset.of(events[1:]).action_rows.max() == 32_767
