"""Periods that cover many orders of magnitude, learned in log space."""

import math
from typing import final

import torch
from jaxtyping import Float64
from torch import Tensor, nn

from model.clock import MICROSECONDS_PER_DAY, MICROSECONDS_PER_SECOND

SECOND = MICROSECONDS_PER_SECOND / MICROSECONDS_PER_DAY
"""A second in days: the published code counts time in seconds."""


@final
class Periods(nn.Module):
    """Periods that training may change, kept as logarithms.

    So a gradient step changes a period by a share of itself, and no period can become negative.
    float64, because phases are.
    """

    def __init__(self, log_periods: Float64[Tensor, " periods"], *, learned: bool) -> None:
        super().__init__()
        self.log_periods = nn.Parameter(log_periods, requires_grad=learned)

    def forward(self) -> Float64[Tensor, " periods"]:
        """The periods, in the unit they were given in."""
        return self.log_periods.exp()

    def frequencies(self) -> Float64[Tensor, " periods"]:
        """Angular frequencies: radians per unit of the periods."""
        return 2 * math.pi / self.log_periods.exp()


def log_uniform(*, count: int, shortest: float, longest: float) -> Float64[Tensor, " count"]:
    """Logarithms of `count` periods spread log-uniformly between two bounds, both included.

    Raises:
        ValueError: if the bounds are not positive and ordered.
    """
    _ensure_ordered(shortest, longest)
    return torch.linspace(math.log(shortest), math.log(longest), count, dtype=torch.float64)


def crowded_at_the_shortest(
    *, count: int, shortest: float, longest: float
) -> Float64[Tensor, " count"]:
    """Logarithms of `count` periods, nearly all of them near the shortest, the last the longest.

    Their frequencies fall from the highest by geometrically growing steps:
    `w_i = w_max - (w_max - w_min)^(i / count)`, i = 1..count.

    Paper: Xu et al. 2019, section 5.
    DIFFERS(paper): frequencies are counted in multiples of the lowest. As printed, the sequence
        depends on the unit of time, and leaves the range once `w_max - w_min` is below one.

    Raises:
        ValueError: if the bounds are not positive and ordered.
    """
    _ensure_ordered(shortest, longest)
    highest = longest / shortest
    steps = torch.arange(1, count + 1, dtype=torch.float64) / count
    return math.log(longest) - (highest - (highest - 1) ** steps).log()


def _ensure_ordered(shortest: float, longest: float) -> None:
    if not 0 < shortest <= longest:
        raise ValueError(f"periods must be positive and ordered, however: {shortest=}, {longest=}")
