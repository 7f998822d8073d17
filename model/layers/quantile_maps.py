"""Learned maps from uniform draws to samples of a distribution: inverse CDFs, and looser ones.

All read draws from (-1, 1) and start as the identity, or close to it: a distribution starts
uniform, and its scale is up to the caller. float64, since what they give is multiplied by years.

Paper: Xu et al. 2019, section 4, `F^-1 = g_theta`.
"""

from typing import cast, final

import torch
import torch.nn.functional as F
from jaxtyping import Float64
from torch import Tensor, nn
from zuko.flows import (
    ElementWiseTransform,
    GeneralCouplingTransform,
    LazyTransform,
)

START = 0.01
"""Standard deviation of the weights that let a map depart from the identity."""


@final
class MonotoneMLP(nn.Module):
    """One draw -> one sample, always increasing: a true inverse CDF.

    A perceptron of one hidden layer whose weights are positive, `sum_j h_j tanh(a_j (x - c_j))`;
    its steps start side by side, of equal height, which adds up to a straight line.
    """

    def __init__(self, hidden: int) -> None:
        super().__init__()
        apart = 2.5 / (hidden - 1)
        self.raw_heights = nn.Parameter(_inverse_softplus(hidden, apart / 2))
        self.raw_steepness = nn.Parameter(_inverse_softplus(hidden, 1 / apart))
        # They reach beyond the draws, for a straight line up to both ends.
        self.centres = nn.Parameter(torch.linspace(-1.25, 1.25, hidden, dtype=torch.float64))
        self.shift = nn.Parameter(torch.zeros(1, dtype=torch.float64))

    def forward(self, draws: Float64[Tensor, " draws"]) -> Float64[Tensor, " draws"]:
        """Samples, ordered as the draws are."""
        steps = (F.softplus(self.raw_steepness) * (draws.unsqueeze(-1) - self.centres)).tanh()
        return self.shift + steps @ F.softplus(self.raw_heights)


@final
class ResidualMLP(nn.Module):
    """All draws at once -> all samples: `W_3 (x + W_2 tanh(W_1 x))`, with biases.

    Paper: Xu et al. 2019, as coded by its authors (`mlp_res`).
    DIFFERS(code): tanh for ReLU, whose units would be on or off for good, as the draws move little;
        and it reads the draws themselves, not `10^-u`.
    """

    def __init__(self, count: int) -> None:
        super().__init__()
        self.inner = nn.Linear(count, count, dtype=torch.float64)
        self.outer = nn.Linear(count, count, dtype=torch.float64)
        self.last = nn.Linear(count, count, dtype=torch.float64)
        for near_zero in (self.outer.weight, self.outer.bias, self.last.bias):
            nn.init.normal_(near_zero, std=START)
        nn.init.eye_(self.last.weight)

    def forward(self, draws: Float64[Tensor, " draws"]) -> Float64[Tensor, " draws"]:
        """Samples, which may depend on one another."""
        samples: Tensor = self.last(draws + self.outer(self.inner(draws).tanh()))
        return samples


@final
class AutoregressiveFlow(nn.Module):
    """One draw -> one sample by a masked autoregressive flow: of one dimension, so affine.

    Paper: Papamakarios et al. 2017; on one dimension as in the code of Xu et al. 2019.
    """

    def __init__(self) -> None:
        super().__init__()
        # What zuko makes of an autoregressive transform that has nothing to condition on.
        self.flow = ElementWiseTransform(1).double()
        for parameter in self.flow.parameters():
            nn.init.zeros_(parameter)

    def forward(self, draws: Float64[Tensor, " draws"]) -> Float64[Tensor, " draws"]:
        """Samples, ordered as the draws are."""
        return _through(self.flow, draws.unsqueeze(-1)).squeeze(-1)


@final
class CouplingFlow(nn.Module):
    """All draws at once -> all samples by RealNVP: either half scales and shifts the other in turn.

    Paper: Dinh et al. 2017.
    DIFFERS(code): Xu et al. 2019 couple once and leave the first two samples as they were drawn;
        here halves alternate, so that every sample is learned.

    Raises:
        ValueError: if there is but one draw.
    """

    def __init__(self, count: int, hidden: int) -> None:
        super().__init__()
        if count < 2:
            raise ValueError(
                f"a coupling flow needs two halves, however: {count=}; take another map"
            )
        is_odd = torch.arange(count) % 2 == 1
        self.flows = nn.ModuleList(
            GeneralCouplingTransform(
                count, mask=mask, hidden_features=(hidden, hidden), activation=nn.Tanh
            ).double()
            for mask in (is_odd, ~is_odd)
        )
        for flow in self.flows:
            last = cast("nn.Sequential", flow.hyper)[-1]
            for parameter in last.parameters():
                nn.init.normal_(parameter, std=START)

    def forward(self, draws: Float64[Tensor, " draws"]) -> Float64[Tensor, " draws"]:
        """Samples, which may depend on one another."""
        samples = draws
        for flow in self.flows:
            samples = _through(cast("LazyTransform", flow), samples)
        return samples


def _through(flow: LazyTransform, draws: Tensor) -> Tensor:
    samples: Tensor = flow()(draws)
    return samples


def _inverse_softplus(count: int, value: float) -> Tensor:
    return torch.full((count,), value, dtype=torch.float64).expm1().log()
