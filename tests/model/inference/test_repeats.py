"""Repeat scores of one history, summed by item."""

import pytest
import torch

from model.history import Event, Query
from model.inference.repeats import sum_repeat_scores
from model.interfaces import EncoderOutput
from tests.contracts.histories import START, collate_queries

BATCH = collate_queries(Query((Event("i0", START), Event("i1", START)), START))


def encode(*scores: float) -> EncoderOutput:
    return EncoderOutput(torch.zeros(1, 1), repeat_scores=torch.tensor([scores]))


def test_a_repeat_score_of_minus_infinity_adds_nothing() -> None:
    found = sum_repeat_scores(BATCH, encode(0.5, float("-inf")), 0)
    assert found is not None
    assert (found.rows.tolist(), found.scores.tolist()) == ([1], [0.5])


def test_a_repeat_score_far_below_another_adds_nothing() -> None:
    found = sum_repeat_scores(BATCH, encode(0.5, -2_000), 0)
    assert found is not None
    assert found.scores.tolist() == [0.5, float("-inf")]


@pytest.mark.parametrize("score", [float("nan"), float("inf")])
def test_other_scores_that_are_not_finite_are_refused(score: float) -> None:
    with pytest.raises(FloatingPointError, match="repeat scores must be finite or -inf"):
        sum_repeat_scores(BATCH, encode(0.5, score), 0)
