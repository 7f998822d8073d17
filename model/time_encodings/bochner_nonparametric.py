"""Bochner's theorem with free frequencies (Xu et al. 2019)."""

import math
from typing import Literal, final

from jaxtyping import Float64
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor

from model.config import Config
from model.interfaces import TimeEncoding
from model.layers.fourier_basis import ReadOut, scaled_basis
from model.layers.log_uniform_periods import LogUniformPeriods


class BochnerNonparametricConfig(Config):
    """How many frequencies, started over which periods (days)."""

    kind: Literal["bochner_nonparametric"] = "bochner_nonparametric"
    frequencies: PositiveInt = 64
    shortest_period: PositiveFloat = 1 / 24
    longest_period: PositiveFloat = 1460.0
    learn_frequencies: bool = True

    def build(self) -> "BochnerNonparametric":
        """The module this describes."""
        return BochnerNonparametric(**self.model_dump(exclude={"kind"}))


@final
class BochnerNonparametric(TimeEncoding):
    """Cosines and sines of free frequencies: the spectrum is a set of learned points.

    The kernel is the mean of `cos(w x)` over the frequencies: stationary and positive definite.

    Shape: intervals (*) -> features (*, 2 * frequencies)

    Example:
        >>> encoding = BochnerNonparametricConfig(frequencies=8).build()
        >>> encoding(torch.zeros(3, dtype=torch.float64)).shape
        torch.Size([3, 16])

    Paper: Xu et al. 2019, section 4, eq. 4 with the frequencies as parameters.
    DIFFERS(code): cosine and sine share a frequency and carry no free amplitude, as in the paper.
    DIFFERS(paper): features are scaled by sqrt(1 / frequencies), so that kernel(t, t) = 1 whatever
        their number; they start log-uniform in period, kept in log space.
    """

    is_stationary = True

    def __init__(
        self,
        *,
        frequencies: int,
        shortest_period: float,
        longest_period: float,
        learn_frequencies: bool,
    ) -> None:
        super().__init__()
        self.dim = 2 * frequencies
        self.periods = LogUniformPeriods(
            count=frequencies,
            shortest=shortest_period,
            longest=longest_period,
            learned=learn_frequencies,
        )

    def frequencies(self) -> Float64[Tensor, " frequencies"]:
        """Angular frequencies, in radians per day."""
        periods: Tensor = self.periods()
        return 2 * math.pi / periods

    def read_out(self) -> ReadOut:
        """The basis itself, scaled."""
        return scaled_basis(self.periods.log_periods)
