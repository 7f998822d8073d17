"""Periods that cover many orders of magnitude, learned in log space."""

import math
from typing import final

import torch
from jaxtyping import Float64
from torch import Tensor, nn


@final
class LogUniformPeriods(nn.Module):
    """`count` periods spread log-uniformly from `shortest` to `longest`, both included.

    Kept as logarithms, so that a gradient step changes a period by a share of itself and no period
    can become negative. float64, because phases are.

    Raises:
        ValueError: if the bounds are not positive and ordered.
    """

    def __init__(self, *, count: int, shortest: float, longest: float, learned: bool) -> None:
        super().__init__()
        if not 0 < shortest <= longest:
            raise ValueError(
                f"periods must be positive and ordered, however: {shortest=}, {longest=}"
            )
        spread = torch.linspace(math.log(shortest), math.log(longest), count, dtype=torch.float64)
        self.log_periods = nn.Parameter(spread, requires_grad=learned)

    def forward(self) -> Float64[Tensor, " periods"]:
        """The periods, in the unit of the bounds."""
        return self.log_periods.exp()
