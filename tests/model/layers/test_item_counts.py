"""Popularity biases from event counts."""

import math

import torch

from model.layers.item_counts import compute_popularity_bias

ROWS = torch.tensor([2, 2, 2, 1, 4])


def test_the_bias_grows_with_the_number_of_events() -> None:
    bias = compute_popularity_bias(ROWS, items=5)
    assert bias[2] > bias[1]
    assert bias[1] == bias[4]
    assert bias[1] > bias[3]
    assert bias[3] == bias[5]


def test_the_weight_of_popularity_stays_below_one_event() -> None:
    for most in (0.5, 1e-6):
        weights = compute_popularity_bias(ROWS, items=5, at_most=most).exp()[1:]
        torch.testing.assert_close(weights.max(), torch.tensor(most))
        assert (weights > 0).all()


def test_an_item_without_events_has_a_finite_bias() -> None:
    assert math.isfinite(compute_popularity_bias(torch.tensor([1]), items=3)[3])
