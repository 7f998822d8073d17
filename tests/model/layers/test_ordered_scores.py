"""Scores as repeat scores in the same order."""

import numpy as np
import torch
from torch import Tensor

from model.layers.ordered_scores import (
    OrderedScores,
    compute_rest_bias,
    order_scores,
    rank_popularity,
)
from model.layers.sparse_matrix import build_sparse_rows
from model.recommender import add_repeat_scores

EVENTS = [0, 5, 3, 9, 1, 5, 2]
"""Per row."""
ROWS = torch.arange(len(EVENTS)).repeat_interleave(torch.tensor(EVENTS))


def order(*of_histories: dict[int, float]) -> OrderedScores:
    """Order scores by row, one history after the other."""
    scores = np.zeros((len(of_histories), len(EVENTS)))
    for history, by_row in enumerate(of_histories):
        scores[history, list(by_row)] = list(by_row.values())
    places = scores.nonzero()
    ranks = rank_popularity(ROWS, items=6)
    return order_scores(build_sparse_rows((scores[places], places), scores.shape), ranks)


def add(ordered: OrderedScores) -> Tensor:
    """Add to a bias of popularity, as a recommender does."""
    bias = compute_rest_bias(ROWS, items=6)
    return add_repeat_scores(bias.expand(len(ordered.rows), -1), *ordered)


def test_equal_numbers_of_events_have_equal_ranks() -> None:
    assert rank_popularity(ROWS, items=6).tolist() == [0, 4, 3, 5, 1, 4, 2]


def test_repeat_scores_are_logarithms_best_first() -> None:
    ordered = order({1: 0.5, 2: 3.0}, {}, {4: 0.25})
    assert ordered.rows.tolist() == [[2, 1], [0, 0], [4, 0]]
    np.testing.assert_allclose(ordered.log_scores[0], np.log([3, 0.5]), atol=2e-5)
    assert ordered.log_scores[1].tolist() == [-np.inf, -np.inf]


def test_equal_scores_are_ordered_by_popularity() -> None:
    scores = add(order(dict.fromkeys(range(1, 7), 0.125)))[0, 1:]
    assert (1 + scores.argsort(descending=True, stable=True)).tolist() == [3, 1, 5, 2, 6, 4]
    assert scores[0] == scores[4]


def test_scores_that_single_precision_rounds_keep_their_order() -> None:
    by_row = {row: 1 + 1e-9 * row for row in range(1, 7)}
    assert add(order(by_row))[0, 1:].diff().min() > 0


def test_scores_far_apart_stay_above_those_of_popularity() -> None:
    found = add(order({1: 1e-200, 2: 1e-150, 4: 50.0}))[0]
    assert found[4] > found[2] > found[1] > found[3] > found[5]


def test_many_small_scores_keep_their_order_beside_a_large_one() -> None:
    values = np.append(np.exp(-np.linspace(400, 60, 2_999)), np.exp(9))
    scores = build_sparse_rows((values, np.arange(1, 3_001), [0, 3_000]), (1, 3_001))
    ordered = order_scores(scores, torch.zeros(3_001, dtype=torch.int64))
    found = add_repeat_scores(torch.full((1, 3_001), -75.0), *ordered)[0, 1:]
    assert found.diff().min() > 0


def test_scores_of_other_terms_in_another_order_are_equal() -> None:
    sums = 0.1 + 0.2 + 0.3, 0.3 + 0.2 + 0.1
    assert sums[0] != sums[1]
    found = add(order({1: sums[0], 5: sums[1]}))[0]
    assert found[1] == found[5]


def test_no_scores_add_nothing() -> None:
    assert torch.equal(add(order({}))[0], add(order({}, {1: 1.0}))[0])
