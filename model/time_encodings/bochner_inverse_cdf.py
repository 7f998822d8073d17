"""Bochner's theorem with a learned distribution of frequencies (Xu et al. 2019)."""

import math
from typing import Literal, final

import torch
from jaxtyping import Float64
from pydantic import Field, PositiveFloat, PositiveInt
from torch import Tensor

from model.config import Config
from model.interfaces import TimeEncoding
from model.layers.fourier_basis import ReadOut, scaled_basis
from model.layers.periods import SECOND, log_uniform
from model.layers.quantile_maps import AutoregressiveFlow, CouplingFlow, MonotoneMLP, ResidualMLP

QuantileMap = MonotoneMLP | ResidualMLP | AutoregressiveFlow | CouplingFlow

SANE = (math.log(SECOND), math.log(1e6))
"""A second to 2,700 years, as log-periods: what a map says beyond is cut off."""


class BochnerInverseCDFConfig(Config):
    """How many frequencies, drawn by which map, started over which periods (days)."""

    kind: Literal["bochner_inverse_cdf"] = "bochner_inverse_cdf"
    map: Literal["mlp", "mlp_residual", "maf", "real_nvp"] = "mlp"
    """mlp and maf take draws one by one, and in order; the others all of them at once."""
    frequencies: PositiveInt = 64
    hidden: int = Field(default=32, ge=2)
    """Hidden width of `mlp` and `real_nvp`."""
    shortest_period: PositiveFloat = 1 / 24
    longest_period: PositiveFloat = 1460.0
    learn_frequencies: bool = True

    @classmethod
    def paper_code(
        cls, dim: int, map: Literal["mlp_residual", "maf", "real_nvp"]
    ) -> "BochnerInverseCDFConfig":
        """As wide as the authors' other encodings start, with `dim` features: 10^0 to 10^-8 radians
        per second.
        """
        turn = 2 * math.pi * SECOND
        return cls(map=map, frequencies=dim // 2, shortest_period=turn, longest_period=turn * 1e8)

    def build(self) -> "BochnerInverseCDF":
        """The module this describes."""
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
    """Cosines and sines of frequencies drawn from a distribution, which is learned.

    The log-period of frequency i is `g(u_i)`, where `u_i` is uniform and `g`, an inverse CDF where
    it takes draws one by one, is learned. Drawn before every step of training, kept otherwise. The
    kernel is the mean of `cos(w x)` over the draws.

    Shape: intervals (*) -> features (*, 2 * frequencies)

    Example:
        >>> encoding = BochnerInverseCDFConfig(map="maf", frequencies=8).build()
        >>> encoding(torch.zeros(3, dtype=torch.float64)).shape
        torch.Size([3, 16])

    Paper: Xu et al. 2019, section 4, `w = F^-1(eps)` with eps uniform.
    DIFFERS(paper): draw i of d comes from the i-th of d equal shares of (0, 1): still uniform taken
        together, but a feature keeps its place from step to step.
    DIFFERS(code): flows start from the uniform as well, rather than the normal distribution, so
        that all maps start log-uniform in period; drawn for training only, not to evaluate.
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
        self.centre, self.reach = (low + high) / 2, (high - low) / 2
        self.log_periods = log_periods.requires_grad_(learn_frequencies)
        self.uniform: Tensor
        self.register_buffer("uniform", torch.empty(frequencies, dtype=torch.float64))
        self.draw()

    def draw(self) -> None:
        """Draw other frequencies."""
        count = len(self.uniform)
        shares = torch.arange(count, dtype=torch.float64, device=self.uniform.device)
        self.uniform.copy_((shares + torch.rand_like(shares)) / count)

    def frequencies(self) -> Float64[Tensor, " frequencies"]:
        """Angular frequencies as drawn, in radians per day."""
        samples: Tensor = self.log_periods(2 * self.uniform - 1)
        log_periods = (self.centre + self.reach * samples).clamp(*SANE)
        frequencies: Tensor = 2 * math.pi / log_periods.exp()
        return frequencies

    def read_out(self) -> ReadOut:
        """The basis itself, scaled."""
        return scaled_basis(self.uniform)
