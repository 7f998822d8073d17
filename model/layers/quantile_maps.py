"""Learned maps from uniform draws to samples: inverse CDFs, and joint maps that generalise them.

All maps take draws from (-1, 1) and are initialised near the identity, so the distribution starts
uniform; the caller sets its scale. float64, because the samples are multiplied by years.

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

INITIAL_STD = 0.01
"""Standard deviation of the initial weights that move a map away from the identity."""


@final
class MonotoneMLP(nn.Module):
    """One draw -> one sample, strictly increasing: a true inverse CDF.

    A perceptron of one hidden layer with positive weights, `sum_j h_j tanh(a_j (x - c_j))`. Its
    steps start evenly spaced and of equal height, which sums to a straight line.

    Paper: Xu et al. 2019, section 4, the map "MLP".
    DIFFERS(code): the authors' code has no MLP without a residual; monotonicity is ours.
    """

    def __init__(self, hidden: int) -> None:
        super().__init__()
        spacing = 2.5 / (hidden - 1)
        self.raw_heights = nn.Parameter(_inverse_softplus(hidden, spacing / 2))
        self.raw_steepness = nn.Parameter(_inverse_softplus(hidden, 1 / spacing))
        # Centres extend beyond the draws, so that the line is straight up to both ends.
        self.centres = nn.Parameter(torch.linspace(-1.25, 1.25, hidden, dtype=torch.float64))
        self.shift = nn.Parameter(torch.zeros(1, dtype=torch.float64))

    def forward(self, draws: Float64[Tensor, " draws"]) -> Float64[Tensor, " draws"]:
        """Map draws to samples in the same order."""
        steps = (F.softplus(self.raw_steepness) * (draws.unsqueeze(-1) - self.centres)).tanh()
        return self.shift + steps @ F.softplus(self.raw_heights)


@final
class ResidualMLP(nn.Module):
    """All draws jointly -> all samples: `W_3 (x + W_2 tanh(W_1 x))`, with biases.

    Paper: Xu et al. 2019, as coded by its authors (`mlp_res`).
    DIFFERS(code): tanh instead of ReLU, whose units would stay on or off, as draws change little;
        the input is the draw itself, not `10^-u`.
    """

    def __init__(self, count: int) -> None:
        super().__init__()
        self.linear1 = nn.Linear(count, count, dtype=torch.float64)
        self.linear2 = nn.Linear(count, count, dtype=torch.float64)
        self.out_proj = nn.Linear(count, count, dtype=torch.float64)
        for near_zero in (self.linear2.weight, self.linear2.bias, self.out_proj.bias):
            nn.init.normal_(near_zero, std=INITIAL_STD)
        nn.init.eye_(self.out_proj.weight)

    def forward(self, draws: Float64[Tensor, " draws"]) -> Float64[Tensor, " draws"]:
        """Map draws to samples that may depend on one another."""
        samples: Tensor = self.out_proj(draws + self.linear2(self.linear1(draws).tanh()))
        return samples


@final
class AutoregressiveFlow(nn.Module):
    """One draw -> one sample by a masked autoregressive flow, which in one dimension is affine.

    Paper: Papamakarios et al. 2017; in one dimension as in the code of Xu et al. 2019.
    """

    def __init__(self) -> None:
        super().__init__()
        # zuko's autoregressive transform without any variable to condition on.
        self.flow = ElementWiseTransform(1).double()
        for parameter in self.flow.parameters():
            nn.init.zeros_(parameter)

    def forward(self, draws: Float64[Tensor, " draws"]) -> Float64[Tensor, " draws"]:
        """Map draws to samples in the same order."""
        return _apply_flow(self.flow, draws.unsqueeze(-1)).squeeze(-1)


@final
class CouplingFlow(nn.Module):
    """All draws jointly -> all samples by RealNVP: each half scales and shifts the other in turn.

    Paper: Dinh et al. 2017.
    DIFFERS(code): Xu et al. 2019 couple once and leave the first two samples as drawn; here the
        halves alternate, so that every sample is learned.

    Raises:
        ValueError: if there is only one draw.
    """

    def __init__(self, count: int, hidden: int) -> None:
        super().__init__()
        if count < 2:
            raise ValueError(
                f"a coupling flow needs at least two draws, but {count=}; choose another map"
            )
        is_odd = torch.arange(count) % 2 == 1
        self.flows = nn.ModuleList(
            GeneralCouplingTransform(
                count, mask=mask, hidden_features=(hidden, hidden), activation=nn.Tanh
            ).double()
            for mask in (is_odd, ~is_odd)
        )
        for flow in self.flows:
            out_proj = cast("nn.Sequential", flow.hyper)[-1]
            for parameter in out_proj.parameters():
                nn.init.normal_(parameter, std=INITIAL_STD)

    def forward(self, draws: Float64[Tensor, " draws"]) -> Float64[Tensor, " draws"]:
        """Map draws to samples that may depend on one another."""
        samples = draws
        for flow in self.flows:
            samples = _apply_flow(cast("LazyTransform", flow), samples)
        return samples


def _apply_flow(flow: LazyTransform, draws: Tensor) -> Tensor:
    samples: Tensor = flow()(draws)
    return samples


def _inverse_softplus(count: int, value: float) -> Tensor:
    return torch.full((count,), value, dtype=torch.float64).expm1().log()
