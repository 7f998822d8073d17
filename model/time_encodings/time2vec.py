"""Time2Vec: sines of learned frequency and phase, and a straight line (Kazemi et al. 2019)."""

import math
from typing import Literal, final

import torch
from jaxtyping import Float64
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor, nn

from model.config import Config
from model.interfaces import TimeEncoding
from model.layers.fourier_basis import ReadOut
from model.layers.periods import Periods, log_uniform

SLOW = 1e-8
"""Radians per day of the sine that is read as a straight line.

`sin(w x) / w` differs from x by the share `(w x)^2 / 6`: 1e-8 in 80 years, less than single
precision tells apart. A small sine loses nothing by being small, so nothing is lost in dividing.
"""


class Time2VecConfig(Config):
    """How many sines, started over which periods (days)."""

    kind: Literal["time2vec"] = "time2vec"
    frequencies: PositiveInt = 64
    start: Literal["log_uniform", "normal"] = "log_uniform"
    """log_uniform: periods between the two below, phases anywhere; normal: frequencies in radians
    per day and phases from a standard normal distribution, as in the public versions."""
    shortest_period: PositiveFloat = 1 / 24
    longest_period: PositiveFloat = 1460.0
    """Also the interval at which the straight line starts at one."""
    learn_frequencies: bool = True

    @classmethod
    def paper_code(cls, frequencies: int) -> "Time2VecConfig":
        """As the public versions start it."""
        return cls(frequencies=frequencies, start="normal")

    def build(self) -> "Time2Vec":
        """The module this describes."""
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
    """Sines of learned frequency and phase, `sin(w_i x + phi_i)`, after a learned straight line.

    A phase is a rotation of a frequency's cosine and sine. The line `a x + b` is the sine of a
    fixed frequency so low that it has not begun to bend, so it is read, rotated and attended to
    like any other.

    Shape: intervals (*) -> features (*, 1 + frequencies)

    Example:
        >>> encoding = Time2VecConfig(frequencies=8).build()
        >>> encoding(torch.zeros(3, dtype=torch.float64)).shape
        torch.Size([3, 9])

    Paper: Kazemi et al. 2019, eq. 1.
    DIFFERS(paper): frequencies start log-uniform in period and the line near one at the longest of
        them, where the paper has random numbers; frequencies are kept positive, in log space, which
        the phases make up for.
    """

    is_stationary = False

    def __init__(self, periods: Periods, phases: Tensor, *, slope: float) -> None:
        super().__init__()
        self.dim = 1 + len(phases)
        self.periods = periods
        self.phases = nn.Parameter(phases)
        # In units of its start, so that its gradient does not grow with the unit of time.
        self.unit_slope = slope
        self.slope = nn.Parameter(torch.ones(1))
        self.intercept = nn.Parameter(torch.zeros(1))

    def frequencies(self) -> Float64[Tensor, " frequencies"]:
        """Angular frequencies, in radians per day: the straight line's, then the sines'."""
        of_sines = self.periods.frequencies()
        return torch.cat((of_sines.new_tensor([SLOW]), of_sines))

    def read_out(self) -> ReadOut:
        """`sin(w x + phi) = sin(phi) cos(w x) + cos(phi) sin(w x)`; of the line, its sine alone."""
        of_cosines = torch.cat((torch.zeros_like(self.slope), self.phases.sin()))
        of_sines = torch.cat((self.slope * self.unit_slope / SLOW, self.phases.cos()))
        weight = torch.stack((torch.diag(of_cosines), torch.diag(of_sines)), dim=-1).flatten(1)
        return ReadOut(weight, torch.cat((self.intercept, torch.zeros_like(self.phases))))
