from pathlib import Path

import numpy as np
import pytest

from benchmarks.papers.peers.export import export_split, order_events
from benchmarks.papers.peers.files import FIT, REFIT, TEST, VALIDATION, QuestionFile, Sequences
from tests.benchmarks.peers.small_splits import SPLITS, split_chains
from training.data.split import Questions, Split


def _export(folder: Path, kind: int, shuffle_seed: int | None = None) -> tuple[Split, Split]:
    whole, split, predict = split_chains(kind)
    final = split.move_to_test(whole, predict)
    export_split(folder, split, final, shuffle_seed=shuffle_seed)
    return split, final


def _assert_same_questions(found: QuestionFile, split: Split, questions: Questions) -> None:
    dataset = split.dataset
    assert found.items == len(dataset.catalog)
    assert np.array_equal(found.query_times, questions.query_times)
    assert len(found) == len(questions) > 0
    for number, (user, end) in enumerate(zip(questions.users, questions.ends, strict=True)):
        own = slice(dataset.offsets[user], end)
        is_known = dataset.rows[own] > 0
        span = slice(found.starts[number], found.ends[number])
        assert np.array_equal(found.rows[span], dataset.rows[own][is_known])
        assert np.array_equal(found.times[span], dataset.times[own][is_known])


@pytest.mark.parametrize("kind", range(len(SPLITS)))
def test_the_questions_are_those_of_the_split(kind: int, tmp_path: Path) -> None:
    split, final = _export(tmp_path, kind)
    validation = QuestionFile.read(tmp_path / VALIDATION)
    _assert_same_questions(validation, split, split.validation)
    assert np.array_equal(validation.target_rows, split.validation.target_rows)
    assert np.array_equal(validation.target_offsets, split.validation.target_offsets)
    _assert_same_questions(QuestionFile.read(tmp_path / TEST), final, final.test)


@pytest.mark.parametrize("kind", range(len(SPLITS)))
def test_the_sequences_are_the_training_events_in_order(kind: int, tmp_path: Path) -> None:
    split, final = _export(tmp_path, kind)
    for file, of in ((FIT, split), (REFIT, final)):
        sequences = Sequences.read(tmp_path / file)
        known = of.is_training & (of.dataset.rows > 0)
        assert np.array_equal(sequences.rows, of.dataset.rows[known])
        assert np.array_equal(sequences.times, of.dataset.times[known])
        owners = np.repeat(np.arange(len(sequences)), np.diff(sequences.offsets))
        assert np.array_equal(owners, of.dataset.user_of[known])


def test_the_file_of_the_test_holds_no_target(tmp_path: Path) -> None:
    _, final = _export(tmp_path, 0)
    test = QuestionFile.read(tmp_path / TEST)
    assert not len(test.target_rows)
    assert not test.target_offsets.any()
    # Leave-one-out: the event of the target is the one that is missing.
    assert len(test.rows) == (final.dataset.rows > 0).sum() - (final.test.target_rows > 0).sum()


def test_prefixes_of_a_user_share_their_events(tmp_path: Path) -> None:
    _, final = _export(tmp_path, 3)
    test = QuestionFile.read(tmp_path / TEST)
    assert len(test) > len(np.unique(final.test.users)) > 1
    assert len(test.rows) < (test.ends - test.starts).sum() / 2


@pytest.mark.parametrize("kind", range(len(SPLITS)))
def test_shuffling_stays_within_instants_and_histories(kind: int) -> None:
    _, split, _ = split_chains(kind)
    dataset = split.dataset
    order = order_events(split, 3)
    assert np.array_equal(np.sort(order), np.arange(len(dataset)))
    assert np.array_equal(dataset.times[order], dataset.times)
    assert np.array_equal(dataset.user_of[order], dataset.user_of)
    for ends in (split.train_ends, split.validation.ends, split.test.ends):
        for end in ends:
            assert (order[:end] < end).all()


def test_shuffling_changes_the_order_within_baskets() -> None:
    _, split, _ = split_chains(2)
    assert not np.array_equal(order_events(split, 3), order_events(split, None))
    assert not np.array_equal(order_events(split, 3), order_events(split, 4))
    assert np.array_equal(order_events(split, 3), order_events(split, 3))
