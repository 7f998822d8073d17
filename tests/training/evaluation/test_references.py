import numpy as np
import pytest

from tests.training.evaluation.logs import dataset_of, everything, question_at, ranking
from training.data.split import Questions
from training.evaluation.references import (
    LastItemMarkov,
    PersonalFrequency,
    PopularAllTime,
    PopularLastWeek,
    RepeatLast,
    fit_references,
    score_reference,
)

# Popularity of all time


def test_popular_items_come_first_and_equal_counts_share_a_score() -> None:
    dataset = dataset_of(("u", "a", 1), ("u", "b", 2), ("v", "b", 3), ("v", "c", 4))
    reference = PopularAllTime.fit(dataset, everything(dataset))
    assert ranking(dataset, reference, question_at(dataset, "u", 9)) == "b a=c"


def test_events_outside_the_training_data_are_not_counted() -> None:
    dataset = dataset_of(("u", "a", 1), ("u", "b", 2), ("u", "b", 3))
    reference = PopularAllTime.fit(dataset, np.array([True, True, False]))
    assert ranking(dataset, reference, question_at(dataset, "u", 9)) == "a=b"


# Popularity of the last week


def test_the_last_week_ranks_first_then_all_time() -> None:
    dataset = dataset_of(
        ("u", "a", 1), ("u", "a", 2), ("u", "b", 1), ("u", "c", 20), ("u", "d", 30)
    )
    reference = PopularLastWeek.fit(dataset, everything(dataset))
    assert ranking(dataset, reference, question_at(dataset, "u", 21)) == "c a b=d"


def test_the_week_is_seven_days_and_ends_before_the_query() -> None:
    dataset = dataset_of(
        ("u", "too-early", 0.999), ("u", "first", 1), ("u", "last", 7.999), ("u", "now", 8)
    )
    reference = PopularLastWeek.fit(dataset, everything(dataset))
    assert ranking(dataset, reference, question_at(dataset, "u", 8)) == "first=last now=too-early"


def test_a_query_after_the_training_data_sees_its_last_week() -> None:
    dataset = dataset_of(("u", "a", 1), ("u", "b", 20))
    reference = PopularLastWeek.fit(dataset, everything(dataset))
    assert ranking(dataset, reference, question_at(dataset, "u", 400)) == "b a"


def test_a_query_before_all_training_data_falls_back_to_all_time() -> None:
    dataset = dataset_of(("u", "a", 5), ("u", "b", 6), ("u", "b", 7))
    reference = PopularLastWeek.fit(dataset, everything(dataset))
    assert ranking(dataset, reference, question_at(dataset, "u", 1)) == "b a"


# What followed the last item


def test_what_most_often_followed_the_last_item_comes_first() -> None:
    dataset = dataset_of(
        *(("u", item, day) for day, item in enumerate("axaxay")), ("v", "z", 0), ("v", "a", 1)
    )
    reference = LastItemMarkov.fit(dataset, everything(dataset))
    assert ranking(dataset, reference, question_at(dataset, "v", 9)) == "x y a z"


def test_one_user_does_not_follow_another() -> None:
    dataset = dataset_of(("u", "a", 1), ("v", "b", 2), ("v", "b", 3), ("v", "c", 4))
    reference = LastItemMarkov.fit(dataset, everything(dataset))
    assert ranking(dataset, reference, question_at(dataset, "u", 9)) == "b a=c"


def test_events_of_one_instant_follow_in_stored_order() -> None:
    dataset = dataset_of(("u", "a", 1), ("u", "b", 1), ("v", "a", 2))
    reference = LastItemMarkov.fit(dataset, everything(dataset))
    assert ranking(dataset, reference, question_at(dataset, "v", 9)) == "b a"


def test_a_user_without_history_gets_what_is_popular() -> None:
    dataset = dataset_of(("u", "a", 1), ("u", "b", 2), ("u", "b", 3))
    for reference in fit_references(dataset, everything(dataset)).values():
        assert ranking(dataset, reference, question_at(dataset, "u", 0)) == "b a"


def test_items_outside_the_catalog_are_passed_over() -> None:
    full = dataset_of(("u", "a", 1), ("u", "b", 2), ("v", "a", 3), ("v", "cold", 4))
    is_training = np.array([True, True, True, False])
    dataset = full.limit_catalog(is_training)
    question = question_at(dataset, "v", 9)
    markov = LastItemMarkov.fit(dataset, is_training)
    personal = PersonalFrequency.fit(dataset, is_training)
    assert ranking(dataset, markov, question) == "b a"
    assert ranking(dataset, personal, question) == "a b"
    assert ranking(dataset, RepeatLast.fit(dataset, is_training), question) == "a b"


# The user's own habits


def test_own_frequent_items_rank_first_the_latest_break_ties() -> None:
    dataset = dataset_of(
        *(("u", item, day) for day, item in enumerate("aabbc")), *[("v", "d", 9)] * 5
    )
    reference = PersonalFrequency.fit(dataset, everything(dataset))
    assert ranking(dataset, reference, question_at(dataset, "u", 9)) == "b a c d"


def test_items_of_one_basket_are_ordered_by_popularity() -> None:
    dataset = dataset_of(("u", "a", 1), ("u", "b", 1), ("v", "b", 1))
    reference = PersonalFrequency.fit(dataset, everything(dataset))
    assert ranking(dataset, reference, question_at(dataset, "u", 9)) == "b a"


def test_the_last_item_comes_first_where_repeats_are_expected() -> None:
    dataset = dataset_of(*(("u", item, day) for day, item in enumerate("aabbbc")), ("v", "b", 9))
    reference = RepeatLast.fit(dataset, everything(dataset))
    assert ranking(dataset, reference, question_at(dataset, "u", 9)) == "c b a"
    assert ranking(dataset, reference, question_at(dataset, "u", 2)) == "a b c"


def test_what_happens_at_or_after_the_query_is_not_known() -> None:
    dataset = dataset_of(("u", "a", 1), ("u", "b", 2), ("u", "b", 3))
    reference = PersonalFrequency.fit(dataset, everything(dataset))
    assert ranking(dataset, reference, question_at(dataset, "u", 2)) == "a b"


# All of them


@pytest.mark.parametrize("block_elements", [1, 7, 10_000])
def test_blocks_cover_every_question_once(
    monkeypatch: pytest.MonkeyPatch, block_elements: int
) -> None:
    monkeypatch.setattr("training.evaluation.references.BLOCK_ELEMENTS", block_elements)
    dataset = dataset_of(*(("u", item, day) for day, item in enumerate("abcabbac")))
    questions = Questions(
        users=np.zeros(8, dtype=np.int64),
        ends=np.arange(8),
        query_times=dataset.times,
        target_offsets=np.arange(9),
        target_rows=dataset.rows,
    )
    for reference in fit_references(dataset, everything(dataset)).values():
        blocks = list(score_reference(reference, questions, items=len(dataset.catalog)))
        assert np.concatenate([block.questions for block in blocks]).tolist() == [*range(8)]
        scores = np.concatenate([block.scores.numpy() for block in blocks])
        assert scores.dtype == np.float32
        assert np.array_equal(scores, reference.score(questions))
