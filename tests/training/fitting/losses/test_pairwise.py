"""Losses that contrast a target's score with the scores of a few other items."""

import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from training.fitting.losses import pairwise
from training.fitting.losses.pairwise import bce, bpr, gbce, score_negatives
from training.fitting.losses.repeats import RepeatScores

PairLoss = Callable[[Tensor, Tensor, Tensor], Tensor]


def gbce_of_ten(positives: Tensor, negatives: Tensor, weights: Tensor) -> Tensor:
    return gbce(positives, negatives, weights, items=11, calibration=0.75)


every_loss = pytest.mark.parametrize("loss", [bce, gbce_of_ten, bpr])


def sigmoid(value: float) -> float:
    return 1 / (1 + math.exp(-value))


def one(positive: float, *negatives: float) -> tuple[Tensor, Tensor, Tensor]:
    return torch.tensor([positive]), torch.tensor([negatives]), torch.ones(1)


# By hand


def test_bce_by_hand() -> None:
    expected = -math.log(sigmoid(0.3)) - math.log(1 - sigmoid(-1.0)) - math.log(1 - sigmoid(2.0))
    assert bce(*one(0.3, -1.0, 2.0)).item() == pytest.approx(expected, rel=1e-6)


def test_bpr_by_hand() -> None:
    expected = -(math.log(sigmoid(0.3 + 1.0)) + math.log(sigmoid(0.3 - 2.0))) / 2
    assert bpr(*one(0.3, -1.0, 2.0)).item() == pytest.approx(expected, rel=1e-6)


def test_gbce_by_hand() -> None:
    alpha, calibration = 2 / 10, 0.75
    beta = alpha * (calibration * (1 - 1 / alpha) + 1 / alpha)
    positive = -math.log(sigmoid(0.3) ** beta)
    negatives = -math.log(1 - sigmoid(-1.0)) - math.log(1 - sigmoid(2.0))
    assert gbce_of_ten(*one(0.3, -1.0, 2.0)).item() == pytest.approx(
        (positive + negatives) / 3, rel=1e-6
    )


@every_loss
def test_targets_count_by_their_weights(loss: PairLoss) -> None:
    positives, negatives = torch.randn(3), torch.randn(3, 2)
    alone = torch.stack(
        [loss(positives[n : n + 1], negatives[n : n + 1], torch.ones(1)) for n in range(3)]
    )
    weights = torch.tensor([0.5, 0.5, 2.0])
    together = loss(positives, negatives, weights)
    torch.testing.assert_close(together, (alone * weights).sum() / 3)


# Limits


def test_gbce_without_calibration_is_bce_over_the_candidates() -> None:
    judged = (torch.randn(5), torch.randn(5, 4), torch.rand(5))
    uncalibrated = gbce(*judged, items=100, calibration=0.0)
    torch.testing.assert_close(uncalibrated, bce(*judged) / 5)


def test_full_gbce_weighs_positives_by_the_drawn_share() -> None:
    positives, negatives, weights = torch.randn(5), torch.randn(5, 4), torch.ones(5)
    full = gbce(positives, negatives, weights, items=41, calibration=1.0)
    expected = -0.1 * F.logsigmoid(positives) - F.logsigmoid(-negatives).sum(-1)
    torch.testing.assert_close(full, expected.mean() / 5)


@pytest.mark.parametrize("items", [1, 2, 3])
def test_gbce_with_many_negatives_is_at_most_bce(items: int) -> None:
    judged = (torch.randn(5), torch.randn(5, 4), torch.ones(5))
    torch.testing.assert_close(gbce(*judged, items=items, calibration=1.0), bce(*judged) / 5)


def test_bpr_of_one_negative_knows_only_the_difference() -> None:
    positives, negatives, weights = torch.randn(5), torch.randn(5, 1), torch.ones(5)
    torch.testing.assert_close(
        bpr(positives, negatives, weights), bpr(positives + 7, negatives + 7, weights)
    )


# Properties of every loss


@every_loss
def test_the_loss_is_monotonic_in_both_scores(loss: PairLoss) -> None:
    by_positive = [loss(*one(score, 0.5, -0.5)).item() for score in (-4.0, -1.0, 0.0, 1.0, 4.0)]
    by_negative = [loss(*one(0.5, score, -0.5)).item() for score in (-4.0, -1.0, 0.0, 1.0, 4.0)]
    assert by_positive == sorted(by_positive, reverse=True)
    assert by_negative == sorted(by_negative)
    assert len({*by_positive}) == len({*by_negative}) == 5


@every_loss
def test_nothing_is_left_to_gain_at_perfect_separation(loss: PairLoss) -> None:
    scores = torch.tensor([30.0], requires_grad=True), torch.full((1, 3), -30.0).requires_grad_()
    found = loss(*scores, torch.ones(1))
    assert found.item() < 1e-9
    for gradient in torch.autograd.grad(found, scores):
        assert gradient.abs().max() < 1e-9


@every_loss
@pytest.mark.parametrize("positive", [-1e4, 0.0, 1e4])
@pytest.mark.parametrize("negative", [-1e4, 0.0, 1e4])
def test_extreme_scores_leave_finite_gradients(
    loss: PairLoss, positive: float, negative: float
) -> None:
    scores = torch.tensor([positive], requires_grad=True), torch.full((1, 3), negative)
    scores[1].requires_grad_()
    found = loss(*scores, torch.ones(1))
    assert found.isfinite()
    for gradient in torch.autograd.grad(found, scores):
        assert gradient.isfinite().all()


@every_loss
def test_a_negative_left_out_adds_nothing_and_leaves_no_gradient(loss: PairLoss) -> None:
    positive = torch.tensor([0.4], requires_grad=True)
    negatives = torch.tensor([[-math.inf, -math.inf]], requires_grad=True)
    found = loss(positive, negatives, torch.ones(1))
    alone = {bce: -F.logsigmoid(positive), bpr: torch.zeros(1)}
    if loss in alone:
        torch.testing.assert_close(found, alone[loss].squeeze())
    found.backward()  # type: ignore[no-untyped-call]
    assert positive.grad is not None
    assert positive.grad.isfinite().all()
    assert (negatives.grad == 0).all()


# Scores of candidates


@pytest.mark.parametrize("chunk", [1, 7 * 4 * 5, 2_000_000])
def test_candidate_scores_are_inner_products_whatever_the_chunks(
    chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pairwise, "CHUNK_ELEMENTS", chunk)
    users = torch.randn(6, 3, 5, dtype=torch.float64, requires_grad=True)
    vectors = torch.randn(9, 5, dtype=torch.float64, requires_grad=True)
    rows = torch.randint(9, (6, 7))
    found, expected = (
        score_negatives(users, vectors, rows),
        torch.einsum("oqw,ocw->oqc", users, vectors[rows]),
    )
    torch.testing.assert_close(found, expected)
    weights = torch.randn_like(found)
    for one_gradient, other in zip(
        torch.autograd.grad((found * weights).sum(), (users, vectors)),
        torch.autograd.grad((expected * weights).sum(), (users, vectors)),
        strict=True,
    ):
        torch.testing.assert_close(one_gradient, other)


def test_no_owners_have_no_candidate_scores() -> None:
    found = score_negatives(torch.zeros(0, 1, 5), torch.zeros(9, 5), torch.zeros(0, 7).long())
    assert found.shape == (0, 1, 7)


# With repeats


def test_repeats_add_their_mass_to_the_candidates_they_hold() -> None:
    log_scores = torch.randn(3, 4, dtype=torch.float64)
    log_scores[0, 3] = log_scores[2, 0] = -math.inf
    log_scores.requires_grad_()
    repeats = RepeatScores(log_scores, torch.tensor([[2, 1, 2, 5], [3, 3, 3, 3], [1, 2, 4, 5]]))
    candidates = torch.tensor([[1, 2, 5], [3, 4, 1], [1, 5, 5]])
    scores = torch.randn(3, 3, dtype=torch.float64, requires_grad=True)
    expected = scores.exp()
    for user in range(3):
        for index, row in enumerate(candidates[user].tolist()):
            holds = repeats.rows[user] == row
            added = torch.zeros_like(expected)
            added[user, index] = 1.0
            expected = expected + added * (log_scores[user].exp() * holds).sum()
    expected = expected.log()
    found = repeats.add_to_candidates(scores, candidates, rows=6)
    torch.testing.assert_close(found, expected)
    for one_gradient, other in zip(
        torch.autograd.grad(found.sum(), (scores, log_scores)),
        torch.autograd.grad(expected.sum(), (scores, log_scores)),
        strict=True,
    ):
        torch.testing.assert_close(one_gradient, other)


def test_one_candidate_gains_what_a_target_gains() -> None:
    repeats = RepeatScores(3 * torch.randn(4, 6), torch.randint(1, 5, (4, 6)))
    scores, rows, users = torch.randn(4), torch.tensor([1, 2, 3, 4]), torch.arange(4)
    torch.testing.assert_close(
        repeats.add_to_candidates(scores[:, None], rows[:, None], rows=5).squeeze(1),
        repeats.add_to_targets(scores, rows, users),
    )
