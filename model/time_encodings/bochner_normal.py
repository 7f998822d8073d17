"""Bochner's theorem with normally distributed frequencies (Xu et al. 2019)."""

import math
from typing import Literal, final

import torch
from jaxtyping import Float64
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor, nn

from model.config import Config
from model.interfaces import TimeEncoding
from model.layers.fourier_basis import BasisProjection, scaled_basis
from model.layers.periods import DAYS_PER_SECOND, Periods, log_uniform


class BochnerNormalConfig(Config):
    """Cosines and sines of frequencies drawn from normal distributions."""

    kind: Literal["bochner_normal"] = "bochner_normal"
    form: Literal["linear", "log"] = "linear"
    """linear: frequencies are normally distributed, as in the paper; log: their logarithms are, so
    that frequencies are log-normal."""
    frequencies: PositiveInt = 64
    """Frequencies, each with a cosine and a sine."""
    shortest_period: PositiveFloat = 1 / 24
    """Shortest initial period, in days; 1/24 is an hour."""
    longest_period: PositiveFloat = 1460.0
    """Longest initial period, in days."""
    spread: PositiveFloat = 0.5
    """Initial standard deviation, of the log-frequency or in radians per day."""
    learn_frequencies: bool = True
    """Whether training changes the means of the frequencies."""
    learn_spread: bool = True
    """Whether training changes the standard deviations."""

    @classmethod
    def from_paper_code(cls, dim: int) -> "BochnerNormalConfig":
        """Use the authors' initial values, with `dim` features.

        Means of 1 to 0.05 radians per second and a fixed standard deviation of 1.
        """
        turn = 2 * math.pi * DAYS_PER_SECOND
        return cls(
            frequencies=dim // 2,
            shortest_period=turn,
            longest_period=turn * 10 ** (8 / (2 * math.pi)),
            spread=1 / DAYS_PER_SECOND,
            learn_spread=False,
        )

    def build(self) -> "BochnerLogNormal | BochnerNormal":
        """Build the module."""
        means = Periods(
            log_uniform(
                count=self.frequencies, shortest=self.shortest_period, longest=self.longest_period
            ),
            learned=self.learn_frequencies,
        )
        form = BochnerLogNormal if self.form == "log" else BochnerNormal
        return form(means, spread=self.spread, learn_spread=self.learn_spread)


@final
class BochnerLogNormal(TimeEncoding):
    """Cosines and sines of drawn frequencies, each log-normal around a learned mean.

    `w_i = exp(mu_i + sigma_i eps_i)` with `eps` standard normal, redrawn before every training step
    and fixed otherwise. The kernel is the mean of `cos(w x)` over the draws.

    Shape: intervals (*) -> features (*, 2 * frequencies)

    Example:
        >>> encoding = BochnerNormalConfig(form="log", frequencies=8).build()
        >>> encoding(torch.zeros(3, dtype=torch.float64)).shape
        torch.Size([3, 16])

    Paper: Xu et al. 2019, section 4, the reparametrisation trick.
    DIFFERS(paper): log-frequencies are normal, not frequencies: one spread in radians per day
        cannot suit both minutes and years. Every frequency has its own mean and spread.
    DIFFERS(code): spreads are learned, where the code fixes them; draws change in training only,
        where the code redraws in evaluation too; features are scaled by sqrt(1 / frequencies), as
        in the paper.
    """

    is_stationary = True

    def __init__(self, means: Periods, *, spread: float, learn_spread: bool) -> None:
        super().__init__()
        count = len(means.log_periods)
        self.dim = 2 * count
        self.periods = means
        # No constraint on the sign: eps is symmetric.
        self.spread_of_log_periods = nn.Parameter(
            torch.full((count,), spread, dtype=torch.float64), requires_grad=learn_spread
        )
        self.noise: Tensor
        self.register_buffer("noise", torch.randn(count, dtype=torch.float64))

    def resample(self) -> None:
        """Draw new frequencies."""
        self.noise.normal_()

    def frequencies(self) -> Float64[Tensor, " frequencies"]:
        """Compute the angular frequencies of the current draws, in radians per day."""
        return self.periods.frequencies() * (self.spread_of_log_periods * self.noise).exp()

    def basis_projection(self) -> BasisProjection:
        """Return the scaled basis."""
        return scaled_basis(self.noise)


@final
class BochnerNormal(TimeEncoding):
    """Cosines and sines of drawn frequencies, each normal around a learned mean.

    `w_i = mu_i + sigma eps_i` with `eps` standard normal, redrawn before every training step and
    fixed otherwise. The kernel is the mean of `cos(w x)` over the draws.

    Shape: intervals (*) -> features (*, 2 * frequencies)

    Example:
        >>> encoding = BochnerNormalConfig(frequencies=8).build()
        >>> encoding(torch.zeros(3, dtype=torch.float64)).shape
        torch.Size([3, 16])

    Paper: Xu et al. 2019, section 4, the reparametrisation trick.
    DIFFERS(paper): every frequency has its own mean, as in the code; the paper has one.
    DIFFERS(code): means are positive, parametrised as log-periods; cos(w x) does not depend on the
        sign of w. The spread is learned unless `learn_spread` is false, where the code fixes it at
        1; draws change in training only; features are scaled by sqrt(1 / frequencies).
    """

    is_stationary = True

    def __init__(self, means: Periods, *, spread: float, learn_spread: bool) -> None:
        super().__init__()
        count = len(means.log_periods)
        self.dim = 2 * count
        self.periods = means
        # The spread is a frequency like the means, so it is parametrised as a period, too.
        log_period = torch.tensor([math.log(2 * math.pi / spread)], dtype=torch.float64)
        self.spread = Periods(log_period, learned=learn_spread)
        self.noise: Tensor
        self.register_buffer("noise", torch.randn(count, dtype=torch.float64))

    def resample(self) -> None:
        """Draw new frequencies."""
        self.noise.normal_()

    def frequencies(self) -> Float64[Tensor, " frequencies"]:
        """Compute the angular frequencies of the current draws, in radians per day.

        Some may be negative.
        """
        return self.periods.frequencies() + self.spread.frequencies() * self.noise

    def basis_projection(self) -> BasisProjection:
        """Return the scaled basis."""
        return scaled_basis(self.noise)
