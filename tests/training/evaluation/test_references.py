import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from model.clock import MICROSECONDS_PER_DAY
from training.data.columns import EVENT_SCHEMA
from training.data.dataset import Dataset
from training.data.split import Questions
from training.evaluation.references import (
    LastItemMarkov,
    PersonalFrequency,
    PopularAllTime,
    PopularLastWeek,
    Reference,
    RepeatLast,
    fit_references,
    score_reference,
)

Happening = tuple[str, str, float]  # user, item, day


def dataset_of(*happenings: Happening) -> Dataset:
    users, items, days = zip(*happenings, strict=True)
    columns = {
        "user_id": users,
        "item_id": items,
        "timestamp": [round(day * MICROSECONDS_PER_DAY) for day in days],
        "action": ["event"] * len(users),
        "value": [None] * len(users),
    }
    return Dataset.of(pl.DataFrame(columns, schema=EVENT_SCHEMA))


def everything(dataset: Dataset) -> NDArray[np.bool_]:
    return np.ones(len(dataset), dtype=np.bool_)


def question_at(dataset: Dataset, user: str, day: float) -> Questions:
    """Build the question of a user's next items on a day, given the events before it."""
    which = dataset.user_ids.index(user)
    at = round(day * MICROSECONDS_PER_DAY)
    start, end = dataset.offsets[which : which + 2]
    return Questions(
        users=np.array([which]),
        ends=start + np.searchsorted(dataset.times[start:end], [at]),
        query_times=np.array([at]),
        target_offsets=np.array([0, 0]),
        target_rows=np.array([], dtype=np.int32),
    )


def ranking(dataset: Dataset, reference: Reference, questions: Questions) -> str:
    """Items best first, such as "b a=c": a and c share a score."""
    scores = reference.score(questions)[0]
    levels = np.unique(scores[1:])[::-1]
    named = (sorted(_names(dataset, scores, level)) for level in levels)
    return " ".join("=".join(names) for names in named)


def _names(dataset: Dataset, scores: NDArray[np.float32], level: np.float32) -> list[str]:
    return [dataset.catalog.item_id(row) for row in np.flatnonzero(scores == level) if row > 0]


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
        ("u", "a", 1), ("u", "a", 1), ("u", "b", 1), ("u", "c", 20), ("u", "d", 30)
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
