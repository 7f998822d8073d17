"""Bochner's theorem with a learned distribution of frequencies (Xu et al. 2019)."""

import math
from typing import Literal, final

import torch
from jaxtyping import Float64
from pydantic import Field, PositiveFloat, PositiveInt
from torch import Tensor

from model.config import Config
from model.interfaces import TimeEncoding
from model.layers.fourier_basis import BasisProjection, scaled_basis
from model.layers.periods import DAYS_PER_SECOND, log_uniform
from model.layers.quantile_maps import AutoregressiveFlow, CouplingFlow, MonotoneMLP, ResidualMLP

QuantileMap = MonotoneMLP | ResidualMLP | AutoregressiveFlow | CouplingFlow

LOG_PERIOD_RANGE = (math.log(DAYS_PER_SECOND), math.log(1e6))
"""From a second to 2,700 years; samples of a map are clamped to it."""


class BochnerInverseCDFConfig(Config):
    """Cosines and sines of frequencies that a learned map draws."""

    kind: Literal["bochner_inverse_cdf"] = "bochner_inverse_cdf"
    map: Literal["mlp", "mlp_residual", "maf", "real_nvp"] = "mlp"
    """mlp and maf map each draw separately and keep the order; the others map all jointly."""
    frequencies: PositiveInt = 64
    """Frequencies, each with a cosine and a sine."""
    hidden: int = Field(default=32, ge=2)
    """Hidden width of `mlp` and `real_nvp`."""
    shortest_period: PositiveFloat = 1 / 24
    """Shortest initial period, in days; 1/24 is an hour."""
    longest_period: PositiveFloat = 1460.0
    """Longest initial period, in days."""
    learn_frequencies: bool = True
    """Whether training changes the map that draws the frequencies."""

    @classmethod
    def from_paper_code(
        cls, dim: int, map: Literal["mlp_residual", "maf", "real_nvp"]
    ) -> "BochnerInverseCDFConfig":
        """Use the initial range of the authors' other encodings, 10^0 to 10^-8 radians per second.

        `dim` is the number of features.
        """
        turn = 2 * math.pi * DAYS_PER_SECOND
        return cls(map=map, frequencies=dim // 2, shortest_period=turn, longest_period=turn * 1e8)

    def build(self) -> "BochnerInverseCDF":
        """Build the module."""
        return BochnerInverseCDF(
            self._map(),
            frequencies=self.frequencies,
            shortest_period=self.shortest_period,
            longest_period=self.longest_period,
            learn_frequencies=self.learn_frequencies,
        )

    def _map(self) -> QuantileMap:
        match self.map:
            case "mlp":
                return MonotoneMLP(self.hidden)
            case "mlp_residual":
                return ResidualMLP(self.frequencies)
            case "maf":
                return AutoregressiveFlow()
            case "real_nvp":
                return CouplingFlow(self.frequencies, self.hidden)


@final
class BochnerInverseCDF(TimeEncoding):
    """Cosines and sines of frequencies drawn from a learned distribution.

    The log-period of frequency i is `g(u_i)`, where `u_i` is uniform and `g` is learned; a map that
    takes draws separately is an inverse CDF. Frequencies are redrawn before every training step and
    fixed otherwise. The kernel is the mean of `cos(w x)` over the draws.

    Shape: intervals (*) -> features (*, 2 * frequencies)

    Example:
        >>> encoding = BochnerInverseCDFConfig(map="maf", frequencies=8).build()
        >>> encoding(torch.zeros(3, dtype=torch.float64)).shape
        torch.Size([3, 16])

    Paper: Xu et al. 2019, section 4, `w = F^-1(eps)` with eps uniform.
    DIFFERS(paper): stratified draws: draw i of d comes from the i-th of d equal parts of (0, 1), so
        that a feature keeps its range of frequencies from step to step.
    DIFFERS(code): flows start from the uniform distribution too, not the normal, so that all maps
        start log-uniform in period; draws change in training only, not in evaluation.
    DIFFERS(code): features are scaled by sqrt(1 / frequencies), as in the paper; samples are
        clamped to `LOG_PERIOD_RANGE`.
    """

    is_stationary = True

    def __init__(
        self,
        log_periods: QuantileMap,
        *,
        frequencies: int,
        shortest_period: float,
        longest_period: float,
        learn_frequencies: bool,
    ) -> None:
        super().__init__()
        self.dim = 2 * frequencies
        low, high = log_uniform(count=2, shortest=shortest_period, longest=longest_period).tolist()
        self.centre, self.half_range = (low + high) / 2, (high - low) / 2
        self.log_periods = log_periods.requires_grad_(learn_frequencies)
        self.uniform: Tensor
        self.register_buffer("uniform", torch.empty(frequencies, dtype=torch.float64))
        self.resample()

    def resample(self) -> None:
        """Draw new frequencies."""
        count = len(self.uniform)
        strata = torch.arange(count, dtype=torch.float64, device=self.uniform.device)
        self.uniform.copy_((strata + torch.rand_like(strata)) / count)

    def frequencies(self) -> Float64[Tensor, " frequencies"]:
        """Compute the angular frequencies of the current draws, in radians per day."""
        samples: Tensor = self.log_periods(2 * self.uniform - 1)
        log_periods = (self.centre + self.half_range * samples).clamp(*LOG_PERIOD_RANGE)
        frequencies: Tensor = 2 * math.pi / log_periods.exp()
        return frequencies

    def basis_projection(self) -> BasisProjection:
        """Return the scaled basis."""
        return scaled_basis(self.uniform)
