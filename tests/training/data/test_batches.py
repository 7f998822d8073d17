from collections import Counter
from typing import get_args

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tiny import DAY, FIRST_AT, event_log
from tests.training.data.drawn_datasets import datasets_of_distinct_items
from training.data.batches import TrainingBatch, TrainingWindows, Windows, collate
from training.data.dataset import Dataset
from training.data.split import Predict

either_task = pytest.mark.parametrize("predict", get_args(Predict))
few = settings(max_examples=50)
ALL = 10_000


def windows_of(dataset: Dataset, predict: Predict, max_history: int) -> TrainingWindows:
    return TrainingWindows(dataset, dataset.offsets[1:], predict=predict, max_history=max_history)


def epoch(windows: TrainingWindows, tokens: int = ALL) -> list[TrainingBatch]:
    return list(windows.iter_epoch(np.random.default_rng(0), tokens=tokens))


def supervised(batch: TrainingBatch) -> list[tuple[list[int], list[int], float, float]]:
    """Per supervised position: rows read, target rows, days from the last event to the query."""
    length = batch.sequences.rows.shape[1]
    found = []
    for number, flat in enumerate(batch.positions.tolist()):
        sample, position = divmod(flat, length)
        mine = batch.position_of == number
        waited = (
            batch.sequences.query_times[sample, position] - batch.sequences.times[sample, position]
        )
        read = batch.sequences.rows[sample, : position + 1].tolist()
        weight = float(batch.weights[mine].sum())
        found.append((read, batch.targets[mine].tolist(), float(waited), weight))
    return found


@either_task
@few
@given(
    dataset=datasets_of_distinct_items(),
    max_history=st.integers(1, 7),
    tokens=st.integers(1, 60),
    held_back=st.integers(0, 3),
)
def test_every_target_is_supervised_exactly_once_an_epoch(
    predict: Predict, dataset: Dataset, max_history: int, tokens: int, held_back: int
) -> None:
    ends = np.maximum(dataset.offsets[1:] - held_back, dataset.offsets[:-1])
    windows = TrainingWindows(dataset, ends, predict=predict, max_history=max_history)
    expected: Counter[int] = Counter()
    for begin, end in zip(dataset.offsets, ends, strict=False):
        known = [event for event in range(begin, end) if dataset.rows[event]]
        for event in known[1:]:
            if predict == "next_event" or dataset.times[event] > dataset.times[known[0]]:
                expected[int(dataset.rows[event])] += 1
    found = Counter(row for batch in epoch(windows, tokens) for row in batch.targets.tolist())
    assert found == expected
    assert windows.targets == expected.total()


@either_task
@few
@given(dataset=datasets_of_distinct_items(), max_history=st.integers(1, 7))
def test_a_position_reads_the_events_before_its_targets(
    predict: Predict, dataset: Dataset, max_history: int
) -> None:
    event_of = {int(row): event for event, row in enumerate(dataset.rows) if row}
    for batch in epoch(windows_of(dataset, predict, max_history)):
        for read, targets, waited, weight in supervised(batch):
            events = [event_of[row] for row in read]
            target_events = [event_of[row] for row in targets]
            user = dataset.user_of[target_events[0]]
            known = [e for e in range(dataset.offsets[user], target_events[0]) if dataset.rows[e]]
            assert events == known[-len(events) :]
            assert len(events) <= max_history
            at = {int(dataset.times[event]) for event in target_events}
            assert len(at) == 1
            assert round(waited * DAY) == at.pop() - dataset.times[events[-1]]
            assert weight == pytest.approx(1)
            if predict == "next_event":
                assert len(targets) == 1
            else:
                assert waited > 0


@either_task
@few
@given(dataset=datasets_of_distinct_items(), max_history=st.integers(1, 7))
def test_every_target_reads_at_least_half_a_window(
    predict: Predict, dataset: Dataset, max_history: int
) -> None:
    event_of = {int(row): event for event, row in enumerate(dataset.rows) if row}
    for batch in epoch(windows_of(dataset, predict, max_history)):
        for read, targets, _, _ in supervised(batch):
            first = event_of[targets[0]]
            begin = dataset.offsets[dataset.user_of[first]]
            before = int((dataset.rows[begin:first] > 0).sum())
            assert len(read) >= min(before, (max_history + 1) // 2)


@either_task
@few
@given(
    dataset=datasets_of_distinct_items(),
    max_history=st.integers(1, 7),
    held_back=st.integers(0, 3),
)
def test_a_window_holds_its_user_and_their_seen_items(
    predict: Predict, dataset: Dataset, max_history: int, held_back: int
) -> None:
    ends = np.maximum(dataset.offsets[1:] - held_back, dataset.offsets[:-1])
    user_of = {int(row): int(user) for row, user in zip(dataset.rows, dataset.user_of, strict=True)}
    windows = TrainingWindows(dataset, ends, predict=predict, max_history=max_history)
    for batch in epoch(windows):
        assert len(batch.users) == len(batch.sequences.rows)
        for user, rows in zip(batch.users.tolist(), batch.sequences.rows.tolist(), strict=True):
            assert {user_of[row] for row in rows if row} == {user}
            met = {*dataset.rows[dataset.offsets[user] : ends[user]].tolist()} - {0}
            everything = np.arange(1, len(dataset.catalog) + 1)
            found = batch.seen.has_seen(np.full(len(everything), user), everything)
            assert {*everything[found].tolist()} == met


def long_tailed(users: int = 1500, seed: int = 0) -> Dataset:
    """Histories as real ones are: many short, few long."""
    lengths = np.random.default_rng(seed).lognormal(3.5, 1.1, users).astype(int) + 2
    return Dataset.of(
        event_log(
            [
                (f"u{user}", f"i{index % 50}", FIRST_AT + index * DAY)
                for user, length in enumerate(lengths)
                for index in range(min(length, 1500))
            ]
        )
    )


@pytest.fixture(scope="module")
def realistic() -> TrainingWindows:
    return windows_of(long_tailed(), "next_event", 200)


def test_less_than_a_tenth_of_a_batch_is_padding(realistic: TrainingWindows) -> None:
    batches = epoch(realistic, tokens=6400)
    padded = sum(batch.sequences.rows.numel() for batch in batches)
    real = sum(int(batch.sequences.lengths.sum()) for batch in batches)
    assert 1 - real / padded < 0.1


@pytest.mark.parametrize("tokens", [200, 1000, 6400])
def test_no_batch_exceeds_its_token_budget(realistic: TrainingWindows, tokens: int) -> None:
    for batch in epoch(realistic, tokens=tokens):
        assert batch.sequences.rows.numel() <= tokens


def test_a_window_longer_than_the_budget_is_a_batch_of_its_own(realistic: TrainingWindows) -> None:
    batches = epoch(realistic, tokens=150)
    assert all(
        batch.sequences.rows.numel() <= 150 or len(batch.sequences.lengths) == 1
        for batch in batches
    )
    assert max(batch.sequences.rows.shape[1] for batch in batches) == 200


def test_batches_differ_by_epoch_and_repeat_with_the_seed(
    realistic: TrainingWindows,
) -> None:
    plans = [
        [chosen.tolist() for chosen in realistic.plan(np.random.default_rng(seed), tokens=2000)]
        for seed in (1, 1, 2)
    ]
    assert plans[0] == plans[1]
    assert plans[0] != plans[2]


@pytest.mark.parametrize("parts", [1, 2, 3, 8])
def test_parts_of_a_batch_hold_each_window_once(realistic: TrainingWindows, parts: int) -> None:
    for chosen in realistic.plan(np.random.default_rng(0), tokens=3_000):
        assert sorted(np.concatenate(realistic.deal(chosen, parts))) == sorted(chosen)


def test_parts_of_a_batch_differ_by_less_than_a_window(realistic: TrainingWindows) -> None:
    lengths = realistic.windows.ends - realistic.windows.starts
    chosen = np.arange(len(lengths))  # windows of all lengths, unlike those of a plan
    events = [lengths[part].sum() for part in realistic.deal(chosen, 8)]
    assert max(events) - min(events) <= lengths.max()


def test_a_part_without_a_window_has_no_weight(realistic: TrainingWindows) -> None:
    alone = np.array([0])
    assert realistic.build_part(alone, 0, 2).weights.sum() > 0
    idle = realistic.build_part(alone, 1, 2)
    assert len(idle.targets) > 0
    assert idle.weights.sum() == 0


def test_without_targets_an_epoch_is_empty() -> None:
    dataset = Dataset.of(event_log([("u", "a", FIRST_AT), ("v", "b", FIRST_AT)]))
    windows = windows_of(dataset, "next_event", 5)
    assert windows.targets == 0
    assert epoch(windows) == []


def test_padding_of_gathered_windows_is_nothing() -> None:
    dataset = Dataset.of(
        event_log([("u", "a", FIRST_AT + day * DAY) for day in range(5)] + [("v", "b", FIRST_AT)])
    )
    windows = Windows(np.array([0, 5]), np.array([4, 6]), np.array([FIRST_AT + 9 * DAY] * 2))
    batch = collate(dataset, windows)
    assert batch.lengths.tolist() == [4, 1]
    assert (batch.rows[1, 1:] == 0).all()
    assert (batch.actions[1, 1:] == 0).all()
    assert batch.times[1].tolist() == [0.0] * 4
    assert batch.query_times[0].tolist() == [1.0, 2.0, 3.0, 9.0]
    assert batch.query_times[1, 0] == 9.0
    assert torch.isfinite(batch.query_times).all()
