"""Bochner's theorem with free frequencies (Xu et al. 2019)."""

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


class BochnerNonparametricConfig(Config):
    """Cosines and sines of learned frequencies."""

    kind: Literal["bochner_nonparametric"] = "bochner_nonparametric"
    form: Literal["paper", "code"] = "paper"
    """paper: a positive definite stationary kernel; code: that of the authors' code, with free
    amplitudes."""
    frequencies: PositiveInt = 64
    """Frequencies, each with a cosine and a sine."""
    shortest_period: PositiveFloat = 1 / 24
    """Shortest initial period, in days; 1/24 is an hour."""
    longest_period: PositiveFloat = 1460.0
    """Longest initial period, in days."""
    learn_frequencies: bool = True
    """Whether training changes the frequencies."""

    @classmethod
    def from_paper_code(cls, dim: int) -> "BochnerNonparametricConfig":
        """Use the authors' initial values: `dim` features, 10^0 to 10^-8 radians per second."""
        turn = 2 * math.pi * DAYS_PER_SECOND
        return cls(
            form="code", frequencies=dim // 2, shortest_period=turn, longest_period=turn * 1e8
        )

    def build(self) -> "BochnerNonparametric | BochnerFreeAmplitudes":
        """Build the module."""
        arguments = self.model_dump(exclude={"kind", "form"})
        paper = self.form == "paper"
        return BochnerNonparametric(**arguments) if paper else BochnerFreeAmplitudes(**arguments)


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
    DIFFERS(code): features are scaled by sqrt(1 / frequencies), as in the paper, so that
        kernel(t, t) = 1.
    DIFFERS(paper): frequencies start log-uniform in period and are parametrised in log space.
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
        self.periods = Periods(
            log_uniform(count=frequencies, shortest=shortest_period, longest=longest_period),
            learned=learn_frequencies,
        )

    def frequencies(self) -> Float64[Tensor, " frequencies"]:
        """Compute the angular frequencies, in radians per day."""
        return self.periods.frequencies()

    def basis_projection(self) -> BasisProjection:
        """Return the scaled basis."""
        return scaled_basis(self.periods.log_periods)


@final
class BochnerFreeAmplitudes(TimeEncoding):
    """Sines and cosines of separate frequencies and amplitudes: the form of the authors' code.

    A sine without the cosine of the same frequency makes the kernel depend on the instants, so it
    is stationary only at initialisation, where both halves have the same frequencies.

    Shape: intervals (*) -> features (*, 2 * frequencies)

    Example:
        >>> encoding = BochnerNonparametricConfig(form="code", frequencies=8).build()
        >>> encoding(torch.zeros(3, dtype=torch.float64)).shape
        torch.Size([3, 16])

    Paper: Xu et al. 2019, as coded by its authors (`time_encode`, non-parametric).
    DIFFERS(code): days instead of seconds, with an initial range to match; `from_paper_code` has
        the authors' range.
    """

    is_stationary = False

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
        log_periods = log_uniform(
            count=frequencies, shortest=shortest_period, longest=longest_period
        )
        self.sine_periods = Periods(log_periods, learned=learn_frequencies)
        self.cosine_periods = Periods(log_periods.clone(), learned=learn_frequencies)
        self.amplitudes = nn.Parameter(torch.ones(self.dim))

    def frequencies(self) -> Float64[Tensor, " frequencies"]:
        """Compute the angular frequencies, in radians per day: the sines', then the cosines'."""
        return torch.cat((self.sine_periods.frequencies(), self.cosine_periods.frequencies()))

    def basis_projection(self) -> BasisProjection:
        """Select the sines of the first half of the frequencies, the cosines of the second."""
        sines, cosines = torch.diag(self.amplitudes).chunk(2, dim=1)
        pairs = torch.cat(
            (
                torch.stack((torch.zeros_like(sines), sines), dim=-1),
                torch.stack((cosines, torch.zeros_like(cosines)), dim=-1),
            ),
            dim=1,
        )
        return BasisProjection(pairs.flatten(1), pairs.new_zeros(self.dim))
