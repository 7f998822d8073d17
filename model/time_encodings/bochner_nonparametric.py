"""Bochner's theorem with free frequencies (Xu et al. 2019)."""

import math
from typing import Literal, final

import torch
from jaxtyping import Float64
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor, nn

from model.config import Config
from model.interfaces import TimeEncoding
from model.layers.fourier_basis import ReadOut, scaled_basis
from model.layers.periods import SECOND, Periods, log_uniform


class BochnerNonparametricConfig(Config):
    """How many frequencies, started over which periods (days)."""

    kind: Literal["bochner_nonparametric"] = "bochner_nonparametric"
    form: Literal["paper", "code"] = "paper"
    """paper: a positive definite stationary kernel; code: the authors', with free amplitudes."""
    frequencies: PositiveInt = 64
    shortest_period: PositiveFloat = 1 / 24
    longest_period: PositiveFloat = 1460.0
    learn_frequencies: bool = True

    @classmethod
    def paper_code(cls, dim: int) -> "BochnerNonparametricConfig":
        """As the authors start it, with `dim` features: 10^0 to 10^-8 radians per second."""
        turn = 2 * math.pi * SECOND
        return cls(
            form="code", frequencies=dim // 2, shortest_period=turn, longest_period=turn * 1e8
        )

    def build(self) -> "BochnerNonparametric | BochnerFreeAmplitudes":
        """The module this describes."""
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
        self.periods = Periods(
            log_uniform(count=frequencies, shortest=shortest_period, longest=longest_period),
            learned=learn_frequencies,
        )

    def frequencies(self) -> Float64[Tensor, " frequencies"]:
        """Angular frequencies, in radians per day."""
        return self.periods.frequencies()

    def read_out(self) -> ReadOut:
        """The basis itself, scaled."""
        return scaled_basis(self.periods.log_periods)


@final
class BochnerFreeAmplitudes(TimeEncoding):
    """Sines and cosines that share neither frequency nor amplitude: the form of the authors' code.

    A sine without its cosine depends on the instants themselves, so the kernel is stationary only
    at the start, where every frequency stands in both halves.

    Shape: intervals (*) -> features (*, 2 * frequencies)

    Example:
        >>> encoding = BochnerNonparametricConfig(form="code", frequencies=8).build()
        >>> encoding(torch.zeros(3, dtype=torch.float64)).shape
        torch.Size([3, 16])

    Paper: Xu et al. 2019, as coded by its authors (`time_encode`, non-parametric).
    DIFFERS(code): days for seconds, and a starting range to match; `paper_code` keeps theirs.
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
        start = log_uniform(count=frequencies, shortest=shortest_period, longest=longest_period)
        self.sine_periods = Periods(start, learned=learn_frequencies)
        self.cosine_periods = Periods(start.clone(), learned=learn_frequencies)
        self.amplitudes = nn.Parameter(torch.ones(self.dim))

    def frequencies(self) -> Float64[Tensor, " frequencies"]:
        """Angular frequencies, in radians per day: the sines', then the cosines'."""
        return torch.cat((self.sine_periods.frequencies(), self.cosine_periods.frequencies()))

    def read_out(self) -> ReadOut:
        """Of the first frequencies their sines, of the others their cosines."""
        of_sines, of_cosines = torch.diag(self.amplitudes).chunk(2, dim=1)
        pairs = torch.cat(
            (
                torch.stack((torch.zeros_like(of_sines), of_sines), dim=-1),
                torch.stack((of_cosines, torch.zeros_like(of_cosines)), dim=-1),
            ),
            dim=1,
        )
        return ReadOut(pairs.flatten(1), pairs.new_zeros(self.dim))
