from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.tiny import DAY, FIRST_AT, event_log
from tests.training.data.drawn_datasets import datasets
from training.data.dataset import Dataset
from training.data.negatives import SeenItems, sample_candidates
from training.data.split import LeaveOneOutConfig, Questions

few = settings(max_examples=50)


def met_sets(dataset: Dataset, ends: NDArray[np.int64]) -> list[set[int]]:
    """What every user has seen in training, one user at a time."""
    return [
        {*dataset.rows[begin:end].tolist()} - {0}
        for begin, end in zip(dataset.offsets, ends, strict=False)
    ]


def drawn_world(
    dataset: Dataset, held_back: int, unknown: set[int]
) -> tuple[Dataset, NDArray[np.int64]]:
    """A data set some of whose items are unknown, and where training ends for each user."""
    is_known = ~np.isin(dataset.rows, [*unknown])
    dataset = replace(dataset, rows=(dataset.rows * is_known).astype(np.int32))
    return dataset, np.maximum(dataset.offsets[1:] - held_back, dataset.offsets[:-1])


worlds = st.builds(drawn_world, datasets(), st.integers(0, 3), st.sets(st.integers(1, 3)))


def bookshop(users: int = 3, items: int = 8) -> SeenItems:
    """User `n` has seen the first `n` items; the last user all of them."""
    counts = [*range(1, users), items]
    log = [
        (f"u{user}", f"i{item}", FIRST_AT + item * DAY)
        for user, count in enumerate(counts)
        for item in range(count)
    ]
    dataset = Dataset.of(event_log(log))
    return SeenItems(dataset, dataset.offsets[1:])


# What was seen


@few
@given(worlds)
def test_the_unmet_items_are_those_that_no_training_event_holds(
    world: tuple[Dataset, NDArray[np.int64]],
) -> None:
    dataset, ends = world
    seen = SeenItems(dataset, ends)
    everything = {*range(1, seen.items + 1)}
    for user, some in enumerate(met_sets(dataset, ends)):
        count = int(seen.unseen_counts[user])
        found = seen.select_unseen(np.array([user]), np.arange(count)[None])[0]
        assert found.tolist() == sorted(everything - some)
        rows = np.arange(1, seen.items + 1)
        has_seen = seen.has_seen(np.full(len(rows), user), rows)
        assert {*rows[has_seen].tolist()} == some


# Negatives


@few
@given(worlds, st.integers(1, 5), st.integers(0, 2**32))
def test_a_negative_is_never_a_training_item_of_its_user(
    world: tuple[Dataset, NDArray[np.int64]], count: int, seed: int
) -> None:
    dataset, ends = world
    seen = SeenItems(dataset, ends)
    users = np.random.default_rng(seed).integers(len(seen), size=20)
    drawn = seen.draw_unseen(users, count, np.random.default_rng(seed))
    assert drawn.shape == (20, count)
    assert ((drawn >= 1) & (drawn <= seen.items)).all()
    of_users = met_sets(dataset, ends)
    for user, rows in zip(users.tolist(), drawn.tolist(), strict=True):
        if len(of_users[user]) < seen.items:
            assert not of_users[user] & {*rows}


def test_every_unmet_item_is_equally_likely() -> None:
    seen = bookshop()
    drawn = seen.draw_unseen(np.full(1, 1), 12_000, np.random.default_rng(0))[0]
    counts = np.bincount(drawn, minlength=9)
    assert counts[:3].tolist() == [0, 0, 0]
    assert (abs(counts[3:] - 2_000) < 4 * np.sqrt(2_000)).all()


def test_a_user_who_has_seen_all_items_is_given_any_item() -> None:
    drawn = bookshop().draw_unseen(np.array([2]), 500, np.random.default_rng(0))[0]
    assert {*drawn.tolist()} == {*range(1, 9)}


def test_the_same_generator_draws_the_same() -> None:
    seen, users = bookshop(), np.array([0, 1, 2, 0])
    one, same = (seen.draw_unseen(users, 3, np.random.default_rng(7)) for _ in range(2))
    assert (one == same).all()


# Candidates of sampled metrics


@few
@given(datasets(min_events=3), st.integers(1, 12))
def test_candidates_are_distinct_unseen_and_no_targets(dataset: Dataset, count: int) -> None:
    cut = LeaveOneOutConfig().split(dataset, "next_basket")
    seen = SeenItems(cut.dataset, cut.train_ends)
    sampled = sample_candidates(seen, cut.test, count=count)
    assert sampled.shape[0] == len(cut.test)
    of_users = met_sets(cut.dataset, cut.train_ends)
    for number, rows in enumerate(sampled.tolist()):
        begin, end = cut.test.target_offsets[number : number + 2]
        barred = of_users[cut.test.users[number]] | {*cut.test.target_rows[begin:end].tolist()}
        found = [row for row in rows if row]
        assert len(found) == len({*found}) == min(count, seen.items - len(barred - {0}))
        assert not {*found} & barred


def questions_of(seen: SeenItems, users: list[int], targets: list[int]) -> Questions:
    return Questions(
        users=np.array(users, dtype=np.int64),
        ends=seen.dataset.offsets[1:][np.array(users, dtype=np.int64)],
        query_times=np.full(len(users), FIRST_AT + 99 * DAY),
        target_offsets=np.arange(len(users) + 1),
        target_rows=np.array(targets, dtype=np.int32),
    )


def test_a_question_meets_the_same_candidates_in_any_company() -> None:
    seen = bookshop(users=6, items=40)
    questions = questions_of(seen, [0, 1, 2, 3, 4], [30, 31, 32, 0, 34])
    whole = sample_candidates(seen, questions, count=10)
    chosen = np.array([3, 1])
    assert (sample_candidates(seen, questions.select(chosen), count=10) == whole[chosen]).all()
    assert (sample_candidates(seen, questions, count=10, seed=1) != whole).any()


def test_a_user_who_has_met_everything_has_no_candidates() -> None:
    seen = bookshop()
    sampled = sample_candidates(seen, questions_of(seen, [2, 1], [3, 4]), count=10)
    assert (sampled[0] == 0).all()
    assert sorted(sampled[1].tolist())[-5:] == [3, 5, 6, 7, 8]


def test_candidates_are_drawn_uniformly() -> None:
    seen = bookshop()
    questions = questions_of(seen, [1], [4])
    counts = sum(
        np.bincount(sample_candidates(seen, questions, count=2, seed=seed)[0], minlength=9)
        for seed in range(2_000)
    )
    assert isinstance(counts, np.ndarray)
    assert counts[[0, 1, 2, 4]].tolist() == [0, 0, 0, 0]
    assert counts[[3, 5, 6, 7, 8]] == pytest.approx(np.full(5, 800), abs=4 * np.sqrt(800))


def test_no_questions_have_no_candidates() -> None:
    seen = bookshop()
    assert sample_candidates(seen, questions_of(seen, [], []), count=10).shape[0] == 0
