"""Learned periods that span many orders of magnitude, stored as logarithms."""

import math
from typing import final

import torch
from jaxtyping import Float64
from torch import Tensor, nn

from model.clock import MICROSECONDS_PER_DAY, MICROSECONDS_PER_SECOND

DAYS_PER_SECOND = MICROSECONDS_PER_SECOND / MICROSECONDS_PER_DAY
"""The published code measures time in seconds."""


@final
class Periods(nn.Module):
    """Periods that training may change, parametrised by their logarithms.

    A gradient step therefore changes a period by a relative amount and never makes it negative.
    float64, because phases are computed in float64.
    """

    def __init__(self, log_periods: Float64[Tensor, " periods"], *, learned: bool) -> None:
        super().__init__()
        self.log_periods = nn.Parameter(log_periods, requires_grad=learned)

    def forward(self) -> Float64[Tensor, " periods"]:
        """Compute the periods, in the unit of the logarithms given."""
        return self.log_periods.exp()

    def frequencies(self) -> Float64[Tensor, " periods"]:
        """Compute the angular frequencies: radians per unit of the periods."""
        return 2 * math.pi / self.log_periods.exp()


def log_uniform(*, count: int, shortest: float, longest: float) -> Float64[Tensor, " count"]:
    """Return the logarithms of `count` periods, log-uniform between two bounds, both included.

    Raises:
        ValueError: if the bounds are not positive and ordered.
    """
    ensure_ordered(shortest, longest)
    return torch.linspace(math.log(shortest), math.log(longest), count, dtype=torch.float64)


def paper_spacing(*, count: int, shortest: float, longest: float) -> Float64[Tensor, " count"]:
    """Return the logarithms of `count` periods spaced as in Xu et al., most near the shortest.

    Frequencies decrease from the highest by geometrically growing steps:
    `w_i = w_max - (w_max - w_min)^(i / count)`, i = 1..count.

    Paper: Xu et al. 2019, section 5.
    DIFFERS(paper): frequencies are multiples of the lowest. As printed, the sequence depends on
        the unit of time, and leaves the range once `w_max - w_min` is below one.

    Raises:
        ValueError: if the bounds are not positive and ordered.
    """
    ensure_ordered(shortest, longest)
    highest = longest / shortest
    steps = torch.arange(1, count + 1, dtype=torch.float64) / count
    return math.log(longest) - (highest - (highest - 1) ** steps).log()


def ensure_ordered(shortest: float, longest: float) -> None:
    """Ensure that two bounds of periods are positive and ordered.

    Raises:
        ValueError: if they are not.
    """
    if not 0 < shortest <= longest:
        raise ValueError(
            f"periods must be positive and ordered, but {shortest=}, {longest=}; "
            "raise longest or lower shortest"
        )
