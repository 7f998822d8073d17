"""A recurrent network over events and intervals: the cost and the inputs of a sweep."""

import torch
from torch import Tensor, nn

from model.layers.interval_features import IntervalFeatures, LogIntervalConfig
from model.layers.interval_recurrence import IntervalRecurrence
from tests.contracts.histories import collate_queries, draw_queries

DIM, HIDDEN = 4, 5


def build(*, uses_time: bool) -> IntervalRecurrence:
    interval = IntervalFeatures(LogIntervalConfig().build(), time_dim=1) if uses_time else None
    recurrence = nn.LSTM(DIM + uses_time, HIDDEN, batch_first=True)
    return IntervalRecurrence(recurrence, interval, hidden=HIDDEN, dim=DIM, dropout=0.5).eval()


def test_a_sweep_runs_the_history_once_and_one_step_per_query() -> None:
    network = build(uses_time=True)
    batch, steps = collate_queries(draw_queries(9)[0]), []

    def count(_: nn.Module, args: tuple[Tensor, ...]) -> None:
        steps.append(tuple(args[0].shape[:2]))

    network.recurrence.register_forward_pre_hook(count)
    instants = batch.query_times[0, -1] + torch.arange(7, dtype=torch.float64)
    network.sweep(batch, torch.randn(1, 9, DIM), instants)
    assert steps == [(1, 8), (7, 1)]


def test_a_sweep_without_intervals_is_constant() -> None:
    network, batch, items = (
        build(uses_time=False),
        collate_queries(draw_queries(5)[0]),
        torch.randn(1, 5, DIM),
    )
    instants = batch.query_times[0, -1] + torch.arange(3, dtype=torch.float64)
    expected = network(batch, items)[:, -1].expand(3, -1)
    torch.testing.assert_close(network.sweep(batch, items, instants), expected)


def test_dropout_applies_to_items_but_not_to_intervals() -> None:
    network, batch = build(uses_time=True).train(), collate_queries(draw_queries(50)[0])
    inputs: list[Tensor] = []

    def keep(_: nn.Module, args: tuple[Tensor, ...]) -> None:
        inputs.append(args[0])

    network.recurrence.register_forward_pre_hook(keep)
    network(batch, torch.ones(1, 50, DIM))
    contents, interval = inputs[0][..., :DIM], inputs[0][0, :, DIM]
    assert 0.2 < (contents == 0).float().mean() < 0.8
    torch.testing.assert_close(interval, (batch.query_times - batch.times)[0].log1p().float())
