"""Time2Vec: sines of learned frequency and phase, and a linear term (Kazemi et al. 2019)."""

import math
from typing import Literal, final

import torch
from jaxtyping import Float64
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor, nn

from model.config import Config
from model.interfaces import TimeEncoding
from model.layers.fourier_basis import BasisProjection
from model.layers.periods import Periods, log_uniform

LINEAR_FREQUENCY = 1e-8
"""Radians per day of the sine that stands for the linear term.

`sin(w x) / w` differs from x by a relative error of `(w x)^2 / 6`: 1e-8 in 80 years, below the
resolution of float32. Floating point keeps the relative precision of a small sine, so the division
loses none.
"""


class Time2VecConfig(Config):
    """Sines with learned frequencies and phases, and a linear term."""

    kind: Literal["time2vec"] = "time2vec"
    frequencies: PositiveInt = 64
    """Sines, each with a frequency and a phase."""
    start: Literal["log_uniform", "normal"] = "log_uniform"
    """log_uniform: periods between the two below, phases uniform; normal: frequencies in radians
    per day and phases from a standard normal distribution, as in public implementations."""
    shortest_period: PositiveFloat = 1 / 24
    """Shortest initial period, in days; 1/24 is an hour."""
    longest_period: PositiveFloat = 1460.0
    """Longest initial period, in days; also where the linear term is initially one."""
    learn_frequencies: bool = True
    """Whether training changes the frequencies."""

    @classmethod
    def from_paper_code(cls, frequencies: int) -> "Time2VecConfig":
        """Use the initial values of public implementations."""
        return cls(frequencies=frequencies, start="normal")

    def build(self) -> "Time2Vec":
        """Build the module."""
        count = self.frequencies
        if self.start == "normal":
            log_periods = math.log(2 * math.pi) - torch.randn(count).double().abs().log()
            phases = torch.randn(count)
        else:
            log_periods = log_uniform(
                count=count, shortest=self.shortest_period, longest=self.longest_period
            )
            phases = 2 * math.pi * torch.rand(count)
        return Time2Vec(
            Periods(log_periods, learned=self.learn_frequencies),
            phases,
            slope=1 / self.longest_period,
        )


@final
class Time2Vec(TimeEncoding):
    """A learned linear term, then sines of learned frequency and phase, `sin(w_i x + phi_i)`.

    A phase is a rotation of a frequency's cosine and sine. The linear term `a x + b` is computed as
    the sine of a fixed, very low frequency, so that it can be rotated like the others.

    Shape: intervals (*) -> features (*, 1 + frequencies)

    Example:
        >>> encoding = Time2VecConfig(frequencies=8).build()
        >>> encoding(torch.zeros(3, dtype=torch.float64)).shape
        torch.Size([3, 9])

    Paper: Kazemi et al. 2019, eq. 1.
    DIFFERS(paper): the argument is the interval to the query time; the paper's is the time of the
        event, from 0 at the first one, or the time since the last event.
    DIFFERS(paper): frequencies start log-uniform in period and the linear term at one at the
        longest of them, where the paper has random numbers.
    DIFFERS(paper): frequencies are positive, parametrised in log space; the phases compensate.
    """

    is_stationary = False

    def __init__(self, periods: Periods, phases: Tensor, *, slope: float) -> None:
        super().__init__()
        self.dim = 1 + len(phases)
        self.periods = periods
        self.phases = nn.Parameter(phases)
        # Relative to its initial value, so that its gradient does not depend on the unit of time.
        self.unit_slope = slope
        self.slope = nn.Parameter(torch.ones(1))
        self.intercept = nn.Parameter(torch.zeros(1))

    def frequencies(self) -> Float64[Tensor, " frequencies"]:
        """Compute the angular frequencies (radians per day): the linear term's, then the sines'."""
        sine_frequencies = self.periods.frequencies()
        return torch.cat((sine_frequencies.new_full((1,), LINEAR_FREQUENCY), sine_frequencies))

    def basis_projection(self) -> BasisProjection:
        """Apply `sin(w x + phi) = sin(phi) cos(w x) + cos(phi) sin(w x)`; the first is a sine."""
        cosines = torch.cat((torch.zeros_like(self.slope), self.phases.sin()))
        sines = torch.cat((self.slope * self.unit_slope / LINEAR_FREQUENCY, self.phases.cos()))
        weight = torch.stack((torch.diag(cosines), torch.diag(sines)), dim=-1).flatten(1)
        return BasisProjection(weight, torch.cat((self.intercept, torch.zeros_like(self.phases))))
