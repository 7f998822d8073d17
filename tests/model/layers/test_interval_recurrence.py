"""A recurrence over events and intervals: what a sweep costs, and what it reads."""

import torch
from torch import Tensor, nn

from model.layers.interval_features import IntervalFeatures, LogIntervalConfig
from model.layers.interval_recurrence import IntervalRecurrence
from tests.contracts.histories import draw_queries, laid_out

DIM, HIDDEN = 4, 5


def reader(*, reads_time: bool) -> IntervalRecurrence:
    interval = IntervalFeatures(LogIntervalConfig().build(), time_dim=1) if reads_time else None
    recurrence = nn.LSTM(DIM + reads_time, HIDDEN, batch_first=True)
    return IntervalRecurrence(recurrence, interval, hidden=HIDDEN, dim=DIM, dropout=0.5).eval()


def test_a_sweep_reads_the_history_once_and_takes_one_step_per_instant() -> None:
    read = reader(reads_time=True)
    batch, steps = laid_out(draw_queries(9)[0]), []

    def count(_: nn.Module, given: tuple[Tensor, ...]) -> None:
        steps.append(tuple(given[0].shape[:2]))

    read.recurrence.register_forward_pre_hook(count)
    instants = batch.query_times[0, -1] + torch.arange(7, dtype=torch.float64)
    read.sweep(batch, torch.randn(1, 9, DIM), instants)
    assert steps == [(1, 8), (7, 1)]


def test_a_sweep_without_intervals_says_the_same_at_every_instant() -> None:
    read, batch, items = (
        reader(reads_time=False),
        laid_out(draw_queries(5)[0]),
        torch.randn(1, 5, DIM),
    )
    instants = batch.query_times[0, -1] + torch.arange(3, dtype=torch.float64)
    expected = read(batch, items)[:, -1].expand(3, -1)
    torch.testing.assert_close(read.sweep(batch, items, instants), expected)


def test_items_and_outputs_are_dropped_out_in_training_but_intervals_are_not() -> None:
    read, batch = reader(reads_time=True).train(), laid_out(draw_queries(50)[0])
    seen: list[Tensor] = []

    def keep(_: nn.Module, given: tuple[Tensor, ...]) -> None:
        seen.append(given[0])

    read.recurrence.register_forward_pre_hook(keep)
    read(batch, torch.ones(1, 50, DIM))
    contents, interval = seen[0][..., :DIM], seen[0][0, :, DIM]
    assert 0.2 < (contents == 0).float().mean() < 0.8
    torch.testing.assert_close(interval, (batch.query_times - batch.times)[0].log1p().float())
