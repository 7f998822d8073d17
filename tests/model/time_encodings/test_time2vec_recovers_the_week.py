"""The synthetic experiment of Kazemi et al. 2019, section 5: which days are multiples of seven?"""

import math
from typing import NamedTuple

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from model.time_encodings.time2vec import Time2Vec, Time2VecConfig

DAYS = 365
TRAINING_DAYS = DAYS * 3 // 4


class Learned(NamedTuple):
    frequency: float
    """Of the sine with the largest weight, in radians per day."""
    accuracy: float
    """Accuracy on the days after training."""


def learn(seed: int, *, apart: float, shortest_period: float) -> Learned:
    """A sigmoid of a weighted sum of Time2Vec, on days that lie `apart` from one another."""
    torch.manual_seed(seed)
    number = torch.arange(1, DAYS + 1)
    times, is_seventh = number.double() * apart, (number % 7 == 0).float()
    encoding = Time2VecConfig(
        frequencies=128, shortest_period=shortest_period, longest_period=60
    ).build()
    weighted_sum = nn.Linear(encoding.dim, 1)
    optimizer = torch.optim.Adam(
        [
            {"params": [encoding.periods.log_periods], "lr": 0.005},
            {"params": [encoding.phases, encoding.slope, encoding.intercept]},
            {"params": weighted_sum.parameters()},
        ],
        lr=0.05,
    )
    training = slice(0, TRAINING_DAYS)
    for _ in range(300):
        logits = weighted_sum(encoding(times[training]))[:, 0]
        loss = F.binary_cross_entropy_with_logits(logits, is_seventh[training])
        # DIFFERS(paper): a small L1 penalty on the weights, so that few sines express the rhythm.
        loss = loss + 0.002 * weighted_sum.weight.abs().sum()
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    with torch.no_grad():
        predicted = weighted_sum(encoding(times))[:, 0] > 0
    accuracy = (predicted == is_seventh.bool())[TRAINING_DAYS:].float().mean().item()
    return Learned(_most_important(encoding, weighted_sum), accuracy)


def _most_important(encoding: Time2Vec, weighted_sum: nn.Linear) -> float:
    sine_weights = weighted_sum.weight[0, 1:].abs()
    return encoding.frequencies()[1:][sine_weights.argmax()].item()


# On whole days, half the period fits as well as the period itself: initial periods are above it,
# five days or more for seven and eight or more for fourteen.
@pytest.mark.parametrize(("apart", "shortest_period"), [(1.0, 5.0), (2.0, 8.0)])
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.slow
def test_it_learns_a_weekly_rhythm_in_any_unit_of_time(
    seed: int, apart: float, shortest_period: float
) -> None:
    learned = learn(seed, apart=apart, shortest_period=shortest_period)
    assert learned.frequency == pytest.approx(2 * math.pi / (7 * apart), rel=0.02)
    assert learned.accuracy == 1.0
