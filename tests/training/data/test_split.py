from itertools import chain
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model.errors import TrainingError
from tests.tiny import DAY, FIRST_AT, event_log
from tests.training.data.drawn_datasets import datasets
from training.data.dataset import Dataset
from training.data.split import (
    ByTimeConfig,
    ByUserConfig,
    LeaveOneOutConfig,
    Predict,
    Questions,
    Split,
    expand_spans,
    find_basket_begins,
    find_basket_ends,
)

SPLITS = (
    LeaveOneOutConfig(),
    ByTimeConfig(test=0.2, validation=0.2),
    ByTimeConfig(test=0.2, validation=0.2, of="span"),
    ByUserConfig(test=0.2, validation=0.2),
)
KINDS = ("leave_one_out", "by_time_of_events", "by_time_of_span", "by_user")
Config = LeaveOneOutConfig | ByTimeConfig | ByUserConfig

every_split = pytest.mark.parametrize("config", SPLITS, ids=KINDS)
either_task = pytest.mark.parametrize("predict", get_args(Predict))
few = settings(max_examples=30)


def cut(config: Config, dataset: Dataset, predict: Predict) -> Split | None:
    """The split, or None where a drawn data set leaves nothing to train on."""
    try:
        return config.split(dataset, predict)
    except TrainingError:
        return None


def targets(split: Split, questions: Questions, predict: Predict) -> list[list[int]]:
    """The absolute indices of the target events of each question, found one by one."""
    dataset, found = split.dataset, []
    for user, end in zip(questions.users.tolist(), questions.ends.tolist(), strict=True):
        stop = end + 1
        while (
            predict == "next_basket"
            and stop < dataset.offsets[user + 1]
            and dataset.times[stop] == dataset.times[end]
        ):
            stop += 1
        found.append(list(range(end, stop)))
    return found


@every_split
@either_task
@few
@given(dataset=datasets(min_events=4))
def test_no_target_was_ever_trained_on(config: Config, predict: Predict, dataset: Dataset) -> None:
    split = cut(config, dataset, predict)
    if split is None:
        return
    validated = [*chain.from_iterable(targets(split, split.validation, predict))]
    tested = [*chain.from_iterable(targets(split, split.test, predict))]
    assert not split.is_training[validated].any()
    assert not split.is_training[tested].any()
    assert not split.is_known_before_test[tested].any()
    assert not set(validated) & set(tested)


@every_split
@either_task
@few
@given(dataset=datasets(min_events=4))
def test_histories_precede_their_targets(
    config: Config, predict: Predict, dataset: Dataset
) -> None:
    split = cut(config, dataset, predict)
    if split is None:
        return
    for questions in (split.validation, split.test):
        for user, end, at in zip(
            questions.users, questions.ends, questions.query_times, strict=True
        ):
            history = split.dataset.times[split.dataset.offsets[user] : end]
            assert len(history)
            assert (history < at).all() if predict == "next_basket" else (history <= at).all()
            assert split.dataset.times[end] == at


@every_split
@either_task
@few
@given(dataset=datasets(min_events=4))
def test_targets_are_the_distinct_items_of_the_next_event(
    config: Config, predict: Predict, dataset: Dataset
) -> None:
    split = cut(config, dataset, predict)
    if split is None:
        return
    for questions in (split.validation, split.test):
        for number, events in enumerate(targets(split, questions, predict)):
            begin, end = questions.target_offsets[number : number + 2]
            rows = questions.target_rows[begin:end].tolist()
            items = dataset.rows[events].tolist()
            assert len(rows) == len(set(items))
            assert rows == [
                split.dataset.rows[event]
                for number, event in enumerate(events)
                if items[number] not in items[:number]
            ]


@every_split
@few
@given(dataset=datasets(min_events=4))
def test_the_catalog_holds_what_was_trained_on(config: Config, dataset: Dataset) -> None:
    split = cut(config, dataset, "next_event")
    if split is None:
        return
    assert {*split.dataset.rows[split.is_training].tolist()} == {
        *range(1, len(split.dataset.catalog) + 1)
    }
    assert split.dataset.catalog.popularity.sum() == split.is_training.sum()


@either_task
@few
@given(dataset=datasets(min_events=4), of=st.sampled_from(["events", "span"]))
def test_by_time_training_events_precede_all_questions(
    predict: Predict, dataset: Dataset, of: str
) -> None:
    config = ByTimeConfig.model_validate({"test": 0.2, "validation": 0.2, "of": of})
    split = cut(config, dataset, predict)
    if split is None:
        return
    learned = dataset.times[split.is_training].max()
    known = dataset.times[split.is_known_before_test].max()
    assert (split.validation.query_times > learned).all()
    assert (split.test.query_times > known).all()
    assert len(set(split.test.users.tolist())) == len(split.test)


@few
@given(dataset=datasets(min_events=4))
def test_by_user_held_out_users_are_not_in_training(dataset: Dataset) -> None:
    split = cut(ByUserConfig(test=0.4, validation=0.4), dataset, "next_event")
    if split is None:
        return
    held_out = {*split.validation.users.tolist(), *split.test.users.tolist()}
    assert not held_out & {*dataset.user_of[split.is_training].tolist()}
    for questions in (split.validation, split.test):
        counts = np.bincount(questions.users, minlength=len(dataset.user_ids))
        events = np.diff(dataset.offsets)
        assert (counts[counts > 0] == events[counts > 0] - 1).all()


def test_leave_one_out_holds_out_the_last_two_events() -> None:
    log = [("u", f"i{day}", FIRST_AT + day * DAY) for day in (0, 4, 2, 3, 1, 5)]
    split = LeaveOneOutConfig().split(Dataset.of(event_log(log)), "next_event")
    assert split.validation.ends.tolist() == [4]
    assert split.test.ends.tolist() == [5]
    assert split.is_training.tolist() == [True] * 4 + [False] * 2


def test_leave_one_out_holds_out_whole_baskets() -> None:
    days = (0, 0, 1, 1, 1, 2, 3, 3)
    log = [("u", f"i{number}", FIRST_AT + day * DAY) for number, day in enumerate(days)]
    split = LeaveOneOutConfig().split(Dataset.of(event_log(log)), "next_basket")
    assert split.is_training.tolist() == [True] * 5 + [False] * 3
    assert (split.validation.ends.tolist(), split.test.ends.tolist()) == ([5], [6])
    assert split.test.target_offsets.tolist() == [0, 2]


def test_a_user_of_two_baskets_only_trains() -> None:
    log = [("u", f"i{number}", FIRST_AT + (number > 1) * DAY) for number in range(5)]
    split = LeaveOneOutConfig().split(Dataset.of(event_log(log)), "next_basket")
    assert split.is_training.all()
    assert len(split.test) == len(split.validation) == 0


def test_a_user_of_two_events_only_trains() -> None:
    log = [("u", "a", FIRST_AT), ("u", "b", FIRST_AT + DAY)]
    split = LeaveOneOutConfig().split(Dataset.of(event_log(log)), "next_event")
    assert split.is_training.all()
    assert len(split.test) == len(split.validation) == 0


def test_an_item_met_only_after_training_is_a_cold_target() -> None:
    log = [("u", item, FIRST_AT + day * DAY) for day, item in enumerate("abaz")]
    split = LeaveOneOutConfig().split(Dataset.of(event_log(log)), "next_event")
    assert split.test.target_rows.tolist() == [0]
    assert split.validation.target_rows.tolist() == [1]


def test_two_cold_items_of_a_basket_are_two_targets() -> None:
    log = [
        ("u", item, FIRST_AT + day * DAY)
        for item, day in zip("abcda", (0, 1, 2, 2, 2), strict=True)
    ]
    whole = Dataset.of(event_log(log))
    split = ByTimeConfig(test=0.49, validation=0.01).split(whole, "next_basket")
    assert sorted(split.test.target_rows.tolist()) == [0, 0, 1]
    moved = split.move_to_test(whole, "next_basket")
    assert moved.test.target_offsets.tolist() == split.test.target_offsets.tolist() == [0, 3]


def test_a_split_that_leaves_nothing_to_train_on_is_refused() -> None:
    at_once = Dataset.of(event_log([("u", "a", FIRST_AT), ("v", "b", FIRST_AT)]))
    with pytest.raises(TrainingError, match="nothing to train on"):
        ByTimeConfig().split(at_once, "next_event")


def test_the_same_seed_holds_out_the_same_users() -> None:
    dataset = Dataset.of(
        event_log([(f"u{n}", "a", FIRST_AT + day * DAY) for n in range(30) for day in (0, 1)])
    )
    held_out = [
        ByUserConfig(seed=seed).split(dataset, "next_event").test.users.tolist()
        for seed in (3, 3, 4)
    ]
    assert held_out[0] == held_out[1] != held_out[2]


@few
@given(dataset=datasets(min_events=4), seed=st.integers(0, 99))
def test_selected_questions_keep_their_targets(dataset: Dataset, seed: int) -> None:
    questions = LeaveOneOutConfig().split(dataset, "next_basket").test
    chosen = np.random.default_rng(seed).permutation(len(questions))[: len(questions) // 2]
    selected = questions.select(chosen)
    for index, number in enumerate(chosen):
        mine = selected.target_rows[selected.question_of == index]
        assert mine.tolist() == questions.target_rows[questions.question_of == number].tolist()
        assert selected.ends[index] == questions.ends[number]


@few
@given(dataset=datasets())
def test_a_basket_ends_where_the_user_or_the_instant_changes(dataset: Dataset) -> None:
    begins, ends = find_basket_begins(dataset), find_basket_ends(dataset)
    assert [*zip(begins[ends - 1], ends, strict=True)] == [*zip(begins, ends, strict=True)]
    assert (begins <= np.arange(len(dataset))).all()
    for event, end in enumerate(find_basket_ends(dataset)):
        owner, at = dataset.user_of[event], dataset.times[event]
        assert (dataset.user_of[event:end] == owner).all()
        assert (dataset.times[event:end] == at).all()
        if end < len(dataset):
            assert (dataset.user_of[end], dataset.times[end]) != (owner, at)


@given(parts=st.lists(st.tuples(st.integers(0, 50), st.integers(0, 6))))
def test_spans_are_ranges_end_to_end(parts: list[tuple[int, int]]) -> None:
    starts, counts = (np.array([part[n] for part in parts], dtype=np.int64) for n in (0, 1))
    expected = [number for start, count in parts for number in range(start, start + count)]
    assert expand_spans(starts, counts).tolist() == expected
