"""Losses that speak of when an event comes."""

import math

import numpy as np
import pytest
import torch
from scipy.integrate import quad
from torch import Tensor

from training.fitting.losses.event_time import continuous_time_loss, next_time_loss

HALF = torch.tensor([[[0.2, 0.5], [0.4, 0.1]]])
"""Intensities of one target, by two heads, of two groups."""


def likelihood(
    at_event: Tensor,
    within: Tensor | None,
    days: list[float],
    marks: list[list[float]],
    weights: list[float] | None = None,
) -> Tensor:
    return continuous_time_loss(
        at_event,
        within,
        torch.tensor(days, dtype=torch.float64),
        torch.tensor(marks),
        torch.tensor(weights or [1.0] * len(days)),
    )


# The likelihood of continuous time


def test_the_likelihood_by_hand() -> None:
    within = torch.tensor([[[0.3, 0.3], [0.1, 0.2]]])
    found = likelihood(HALF, within, [2.0], [[0.0, 1.0]])
    first = math.log(0.5) - 2 * 0.6
    second = math.log(0.1) - 2 * 0.3
    assert found.item() == pytest.approx(-(first + second) / 2)


def test_a_target_of_several_groups_came_by_any_of_them() -> None:
    found = likelihood(HALF, torch.zeros_like(HALF), [2.0], [[1.0, 1.0]])
    assert found.item() == pytest.approx(-(math.log(0.7) + math.log(0.5)) / 2)


def test_the_biased_integral_is_half_the_right_end() -> None:
    found = likelihood(HALF, None, [2.0], [[0.0, 1.0]])
    first = math.log(0.5) - 0.5 * 2 * 0.7
    second = math.log(0.1) - 0.5 * 2 * 0.5
    assert found.item() == pytest.approx(-(first + second) / 2)


def test_the_integral_by_one_draw_is_unbiased() -> None:
    def intensity(at: np.ndarray | float) -> np.ndarray | float:
        return 0.4 + 0.3 * np.sin(3 * at) ** 2 + 0.2 * np.exp(-at)

    days, draws = 2.5, 20_000
    integral, _ = quad(intensity, 0, days)
    at = np.random.default_rng(0).uniform(0, days, draws)
    within = torch.from_numpy(np.asarray(intensity(at))).float().view(draws, 1, 1)
    # An intensity of one at the event: its log is zero, and the integral is left.
    found = likelihood(torch.ones(draws, 1, 1), within, [days] * draws, [[1.0]] * draws)
    error = days * float(within.std()) / math.sqrt(draws)
    assert abs(found.item() - integral) < 4 * error
    assert error < 0.01 * integral


def test_a_target_without_a_group_is_left_out_whatever_it_holds() -> None:
    broken = torch.full_like(HALF, math.nan)
    found = likelihood(
        torch.cat((HALF, broken)), torch.cat((HALF, broken)), [2.0, 1e9], [[0.0, 1.0], [0.0, 0.0]]
    )
    assert found.item() == pytest.approx(likelihood(HALF, HALF, [2.0], [[0.0, 1.0]]).item())


def test_without_any_group_there_is_nothing_to_lose() -> None:
    at_event = HALF.clone().requires_grad_()
    found = likelihood(at_event, at_event, [2.0], [[0.0, 0.0]])
    found.backward()  # type: ignore[no-untyped-call]
    assert found.item() == 0
    assert (at_event.grad == 0).all()


def test_targets_count_by_their_weights() -> None:
    pair = torch.cat((HALF, 2 * HALF))
    marks = [[0.0, 1.0], [1.0, 0.0]]
    alone = [
        likelihood(pair[n : n + 1], pair[n : n + 1], [1.0 + n], [marks[n]]).item() for n in (0, 1)
    ]
    found = likelihood(pair, pair, [1.0, 2.0], marks, [0.25, 0.75])
    assert found.item() == pytest.approx(0.25 * alone[0] + 0.75 * alone[1])


def test_the_loss_falls_as_the_targets_group_gets_likelier() -> None:
    found = [
        likelihood(torch.tensor([[[rate, 0.1]]]), HALF[:, :1], [1.0], [[1.0, 0.0]]).item()
        for rate in (1e-6, 0.1, 1.0, 30.0)
    ]
    assert found == sorted(found, reverse=True)


@pytest.mark.parametrize("rate", [0.0, 1e-30, 1e4])
@pytest.mark.parametrize("days", [0.0, 1e4])
def test_extreme_rates_and_intervals_leave_finite_gradients(rate: float, days: float) -> None:
    rates = torch.full((2, 1, 3), rate, requires_grad=True)
    for within in (rates, None):
        found = likelihood(rates, within, [days, days], [[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]])
        assert found.isfinite()
        (gradient,) = torch.autograd.grad(found, rates)
        assert gradient.isfinite().all()


# The next event's time


def test_the_next_time_loss_is_a_weighted_mean() -> None:
    log_density = torch.tensor([-1.0, 2.0, 0.5])
    found = next_time_loss(log_density, torch.tensor([1.0, 1.0, 0.0]))
    assert found.item() == pytest.approx(-0.5)


def test_an_exponential_density_is_fitted_at_its_mean_rate() -> None:
    days = torch.from_numpy(np.random.default_rng(0).exponential(4.0, 2_000))
    rate = torch.tensor(1 / float(days.mean()), dtype=torch.float64, requires_grad=True)
    loss = next_time_loss((rate.log() - rate * days).float(), torch.ones(len(days)))
    (gradient,) = torch.autograd.grad(loss, rate)
    assert abs(gradient.item()) < 1e-3
